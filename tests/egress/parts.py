"""A proxy on its socket, and canaries on loopback that keep what reaches them."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from limpet.egress.authority import Authority
from limpet.egress.grants import Grant, grant
from limpet.egress.hosts import Host, parse_all
from limpet.egress.proxy import Caps, Egress
from limpet.net.guard import Guard, NetworkRules

VALUE = "tvly-AAAA1111BBBB"
HERE = Guard(NetworkRules(allow_cidrs=("127.0.0.0/8",)))
PUBLIC = Authority([Host("127.0.0.1"), Host("127.0.0.2"), Host("localhost")])
"""Stands for the authorities that the system trusts."""
TRUST = ssl.create_default_context(cadata=PUBLIC.pem.decode())


class Canary:
    """Counts connections and keeps the requests; answers with `answer`, or echoes the request."""

    def __init__(self, answer: bytes = b"") -> None:
        self.answer = answer
        self.visits = 0
        self.heard: list[bytes] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.visits += 1
        try:
            async with asyncio.timeout(5):
                data = await reader.readuntil(b"\r\n\r\n")
                lower = data.lower()
                if b"content-length:" in lower:
                    data += await reader.readexactly(int(lower.partition(b"content-length:")[2].split()[0]))
                elif b"chunked" in lower:
                    data += await reader.readuntil(b"0\r\n\r\n")
            self.heard.append(data)
            writer.write(self.answer or b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(data), data))
            await writer.drain()
        except (OSError, EOFError, TimeoutError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def canary(*, host: str = "127.0.0.1", secure: bool = False, answer: bytes = b"") -> AsyncGenerator[Canary]:
    bird = Canary(answer)
    context = PUBLIC.context(host) if secure else None
    server = await asyncio.start_server(bird.serve, host, 0, ssl=context)
    bird.port = server.sockets[0].getsockname()[1]
    try:
        yield bird
    finally:
        server.close()
        await server.wait_closed()


def granted(*hosts: str, value: str = VALUE) -> Grant:
    return grant("SEARCH_KEY", value, parse_all(hosts, setting="x"))


@asynccontextmanager
async def proxy(
    folder: Path, *hosts: str, grants: Iterable[Grant] = (), guard: Guard = HERE, caps: Caps | None = None
) -> AsyncGenerator[Egress]:
    async with Egress(
        parse_all(hosts, setting="egress.hosts"),
        tuple(grants),
        guard=guard,
        folder=folder,
        caps=caps or Caps(),
        trust=TRUST,
    ) as egress:
        yield egress


async def ask(egress: Egress, request: bytes, *, tls: str = "", more: bytes = b"") -> bytes:
    """Send `request` to the proxy; all of the answer. With `tls`, `more` is sent to that host in the tunnel."""
    path = egress.network.door
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        there = f"/proc/self/fd/{folder}/{os.path.basename(path)}"
        reader, writer = await asyncio.open_unix_connection(there)
    finally:
        os.close(folder)
    try:
        async with asyncio.timeout(20):
            writer.write(request)
            if not tls and not more:
                return await reader.read()
            head = await reader.readuntil(b"\r\n\r\n")
            if b" 200 " not in head:
                return head + await reader.read()
            if tls:
                await writer.start_tls(client_trust(egress), server_hostname=tls)
            writer.write(more)
            return await reader.read()
    finally:
        writer.close()


def client_trust(egress: Egress) -> ssl.SSLContext:
    """What a command trusts: the file it is shown, and in a blind tunnel the canary's authority."""
    context = ssl.create_default_context(cadata=PUBLIC.pem.decode())
    for outside, _ in egress.network.shown:
        context.load_verify_locations(outside)
    return context


def get(url: str, *headers: str) -> bytes:
    return "\r\n".join((f"GET {url} HTTP/1.1", "Host: example.invalid", *headers, "", "")).encode()


def connect(target: str) -> bytes:
    return f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode()
