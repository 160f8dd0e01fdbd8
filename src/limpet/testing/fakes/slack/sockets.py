"""Socket Mode of the fake Slack: connections, envelopes, and what was not acknowledged."""

from __future__ import annotations

import asyncio
import contextlib
import itertools

import msgspec
from aiohttp import WSMsgType, web
from msgspec import Struct

from limpet.testing.fakes.slack.rooms import Json


class Envelope(Struct, kw_only=True):
    """What is given until it is acknowledged; `ids` are the envelopes it went out in, `tries` how often."""

    type: str
    payload: Json
    ids: list[str] = msgspec.field(default_factory=list[str])
    tries: int = 0


class Link(Struct, kw_only=True):
    socket: web.WebSocketResponse
    request: web.Request
    leaving: bool = False


class Sockets:
    """`refuse`: the reason of a `disconnect` in place of the hello. `acked` are payloads in the order of their acks."""

    def __init__(self) -> None:
        self.tickets: set[str] = set()
        self.links: list[Link] = []
        self.waiting: list[Envelope] = []
        self.acked: list[Json] = []
        self.faults: list[str] = []
        self.opened = 0
        self.refuse = ""
        self._count = itertools.count(1)

    def ticket(self) -> str:
        found = f"ticket-secret-{next(self._count)}"
        self.tickets.add(found)
        return found

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        """A ticket serves once; what is open is given to the new connection."""
        if request.query.get("ticket", "") not in self.tickets:
            raise web.HTTPForbidden
        self.tickets.discard(request.query["ticket"])
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        if self.refuse:
            await socket.send_json({"type": "disconnect", "reason": self.refuse})
            await socket.close()
            return socket
        link = Link(socket=socket, request=request)
        self.opened += 1
        await socket.send_json({"type": "hello", "num_connections": len(self.links) + 1, "connection_info": {}})
        self.links.append(link)
        await self.give_again()
        try:
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    self._acknowledge(message.data)
        finally:
            self.links.remove(link)
        return socket

    def _acknowledge(self, data: str) -> None:
        id = msgspec.json.decode(data, type=Json).get("envelope_id")
        found = [one for one in self.waiting if id in one.ids]
        if not found:
            self.faults.append(f"no envelope {id} waits")
        for one in found:
            self.waiting.remove(one)
            self.acked.append(one.payload)

    async def give(self, type: str, payload: Json) -> None:
        envelope = Envelope(type=type, payload=payload)
        self.waiting.append(envelope)
        await self._send(envelope)

    async def give_again(self) -> None:
        """As after 3 seconds without an acknowledgement."""
        for envelope in list(self.waiting):
            await self._send(envelope)

    async def _send(self, envelope: Envelope) -> None:
        link = next((link for link in reversed(self.links) if not link.leaving), self.links[-1] if self.links else None)
        if link is None or link.socket.closed:
            return
        id = f"envelope-{next(self._count)}"
        told: Json = {"type": envelope.type, "envelope_id": id, "payload": envelope.payload}
        if envelope.tries:
            told |= {"retry_attempt": envelope.tries, "retry_reason": "timeout"}
        envelope.ids.append(id)
        envelope.tries += 1
        with contextlib.suppress(ConnectionError):
            await link.socket.send_json(told | {"accepts_response_payload": envelope.type != "events_api"})

    async def tell(self, reason: str) -> None:
        """Announce to each connection that it is about to end."""
        for link in list(self.links):
            link.leaving = True
            await link.socket.send_json({"type": "disconnect", "reason": reason, "debug_info": {}})

    async def cut(self) -> None:
        """End the connections abruptly."""
        for link in list(self.links):
            if link.request.transport is not None:
                link.request.transport.abort()
        await asyncio.sleep(0)
