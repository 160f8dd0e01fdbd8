"""Nudges: one process tells the others that the database holds something for them.

A nudge is an empty hint over a datagram socket `run/<owner>.sock`; what it is about stands in the database. A lost one
costs at most the second until the next look at `PRAGMA data_version`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket

from limpet.store.driver import Store
from limpet.store.owner import Owner

SWEEP = 1.0
"""Seconds between two looks at the database for news whose nudge was lost."""


class Nudges:
    """`wait` returns when there may be news; `send` tells the other processes of this home.

    Made inside a running event loop; any number of tasks may wait.
    """

    def __init__(self, owner: Owner, store: Store) -> None:
        self._owner = owner
        self._store = store
        self._loop = asyncio.get_running_loop()
        self._waiting: set[asyncio.Future[None]] = set()
        self._version = 0
        self._timer: asyncio.TimerHandle | None = None
        self._socket = _bind(os.path.join(owner.run, f"{owner.name}.sock"))
        if self._socket is not None:
            self._loop.add_reader(self._socket, self._arrived, self._socket)

    async def wait(self, timeout: float) -> None:
        """Return at a nudge, when another connection has committed, or after `timeout` seconds."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting.add(future)
        if self._timer is None:
            self._version = self._store.data_version()
            self._timer = self._loop.call_later(SWEEP, self._sweep)
        try:
            async with asyncio.timeout(timeout):
                await future
        except TimeoutError:
            pass
        finally:
            self._waiting.discard(future)

    def _arrived(self, receiver: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError):
            while receiver.recv(16):
                pass
        self.wake()

    def _sweep(self) -> None:
        self._timer = None
        version = self._store.data_version()
        if version != self._version:
            self._version = version
            self.wake()
        if self._waiting:
            self._timer = self._loop.call_later(SWEEP, self._sweep)

    def wake(self) -> None:
        """Let everybody who waits in this process look again."""
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    def send(self) -> None:
        """Nudge this process and every other living one of this home. Never blocks; a full socket is skipped."""
        self.wake()
        others = [name for name in os.listdir(self._owner.run) if name.endswith(".sock")]
        if len(others) < 2:
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            for name in others:
                if name != f"{self._owner.name}.sock":
                    with contextlib.suppress(OSError), _reachable(os.path.join(self._owner.run, name)) as path:
                        sender.sendto(b"!", path)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._socket is not None:
            self._loop.remove_reader(self._socket)
            self._socket.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self._owner.run, f"{self._owner.name}.sock"))


def _bind(path: str) -> socket.socket | None:
    """A bound socket, or None where the path is too long for one and the sweep has to do."""
    receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    receiver.setblocking(False)
    try:
        with _reachable(path) as short:
            receiver.bind(short)
    except OSError:
        receiver.close()
        return None
    return receiver


class _reachable:
    """The path of a socket in at most the 100 bytes that `sun_path` takes: through /proc where it is longer."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = -1

    def __enter__(self) -> str:
        if len(os.fsencode(self._path)) <= 100:
            return self._path
        self._fd = os.open(os.path.dirname(self._path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return f"/proc/self/fd/{self._fd}/{os.path.basename(self._path)}"

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            os.close(self._fd)
