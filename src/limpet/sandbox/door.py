"""The forwarder inside a sandbox: a port of its loopback leads to a Unix socket of the agent. Standard library only.

It runs as a thread of the init, so that it lives as long as the command's processes do and is none of them.
"""

from __future__ import annotations

import select
import socket

MOST = 128
"""Connections at once; those beyond are closed."""
_CHUNK = 65_536


class Side:
    """One end of a connection. `out` waits to be written to it; `ended`: nothing more is read from it."""

    def __init__(self, one: socket.socket) -> None:
        one.setblocking(False)
        self.socket = one
        self.out = b""
        self.ended = False
        self.shut = False
        self.peer = self

    def wants(self) -> int:
        reads = 0 if self.ended or self.peer.out else select.POLLIN
        return reads | (select.POLLOUT if self.out else 0)

    def turn(self, event: int) -> bool:
        """Move what can be moved; whether the connection goes on."""
        try:
            if event & select.POLLOUT:
                self.out = self.out[self.socket.send(self.out) :]
            if event & (select.POLLIN | select.POLLHUP) and not self.ended and not self.peer.out:
                data = self.socket.recv(_CHUNK)
                self.peer.out = data
                self.ended = not data
            for one in (self, self.peer):
                if one.peer.ended and not one.out and not one.shut:
                    one.socket.shutdown(socket.SHUT_WR)
                    one.shut = True
        except BlockingIOError:
            return True
        except OSError:
            return False
        return not (self.shut and self.peer.shut) and not event & (select.POLLERR | select.POLLNVAL)


def listen(port: int) -> socket.socket:
    """Take connections from now on; those that come before `serve` wait."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(MOST)
    return listener


def serve(listener: socket.socket, path: str) -> None:
    """Forward for ever."""
    poller = select.poll()
    poller.register(listener, select.POLLIN)
    sides: dict[int, Side] = {}
    while True:
        for number, event in poller.poll():
            if number == listener.fileno():
                for side in _accepted(listener, path, room=len(sides) < 2 * MOST):
                    sides[side.socket.fileno()] = side
                    poller.register(side.socket, side.wants())
                continue
            side = sides.get(number)
            if side is None:
                continue
            if side.turn(event):
                for one in (side, side.peer):
                    _watch(poller, one)
            else:
                for one in (side, side.peer):
                    _forget(poller, one)
                    del sides[one.socket.fileno()]
                    one.socket.close()


def _watch(poller: select.poll, side: Side) -> None:
    """A side that wants nothing is not looked at: its end would be told again and again."""
    _forget(poller, side)
    if wanted := side.wants():
        poller.register(side.socket, wanted)


def _forget(poller: select.poll, side: Side) -> None:
    try:
        poller.unregister(side.socket)
    except KeyError:
        return


def _accepted(listener: socket.socket, path: str, *, room: bool) -> list[Side]:
    """Both sides of a new connection; none when it cannot be made."""
    try:
        inner, _ = listener.accept()
    except OSError:
        return []
    outer = socket.socket(socket.AF_UNIX)
    try:
        if not room:
            raise OSError
        outer.connect(path)
    except OSError:
        inner.close()
        outer.close()
        return []
    sides = [Side(inner), Side(outer)]
    sides[0].peer, sides[1].peer = sides[1], sides[0]
    return sides
