"""The proxy that a sandboxed command sees instead of the network: named hosts only, secrets put in on the way.

It listens on a Unix socket, which the sandbox shows at a port of its own loopback. Plain requests and `CONNECT` are
taken. Hosts that are granted no secret are tunnelled unseen; for the others the proxy speaks TLS itself, under the
process's own authority. Upstream certificates are always verified, and every address passes the guard of tools.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from asyncio import StreamReader, StreamWriter
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from limpet.egress.authority import Authority, system_roots
from limpet.egress.grants import Grant, Purse
from limpet.egress.hosts import Host, split
from limpet.egress.http import LARGEST_HEAD, BadMessageError, Head, read_head, write_head
from limpet.egress.relay import Ends, exchange, tunnel
from limpet.errors import NetworkRefusedError
from limpet.net.guard import Guard
from limpet.sandbox.network import FOLDER, PORT, Network

log = logging.getLogger(__name__)

_LINGER = 2.0
"""Seconds."""
_ROOTS = "roots.pem"
_TRUST = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO")
"""Variables by which programs learn which certificates to trust."""


class Caps(Struct, frozen=True):
    """`connections` at once; seconds for a `head` to come, for a connection to be made, of silence, for all."""

    connections: int = 64
    head: float = 10.0
    connect: float = 15.0
    idle: float = 120.0
    seconds: float = 1_800.0


class Egress:
    """`async with Egress(...) as egress:` serves until the block ends; `egress.network` is for the jobs of commands."""

    def __init__(
        self,
        hosts: tuple[Host, ...],
        grants: tuple[Grant, ...],
        *,
        guard: Guard,
        folder: Path,
        caps: Caps = Caps(),  # noqa: B008 (frozen)
        trust: ssl.SSLContext | None = None,
    ) -> None:
        """`folder` is private and holds the socket. `trust` verifies upstream certificates: the system's by default."""
        self._hosts = hosts
        self._grants = grants
        self._guard = guard
        self._caps = caps
        self._trust = trust
        name = f"egress-{os.getpid()}-{os.urandom(4).hex()}"
        self._socket = folder / f"{name}.sock"
        self._roots = folder / f"{name}.pem"
        self._authority: Authority | None = None
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Egress:
        _remove_dead(self._socket.parent)
        if self._grants:
            self._authority = Authority(host for one in self._grants for host in one.hosts)
            _write_private(self._roots, system_roots() + self._authority.pem)
        folder = os.open(self._socket.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:  # a path of any length: those of sockets are short
            path = f"/proc/self/fd/{folder}/{self._socket.name}"
            self._server = await asyncio.start_unix_server(self._accept, path, limit=LARGEST_HEAD)
        finally:
            os.close(folder)
        os.chmod(self._socket, 0o600)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for path in (self._socket, self._roots):
            path.unlink(missing_ok=True)

    @property
    def network(self) -> Network:
        """What a job is given to see this proxy, and nothing else."""
        address = f"http://127.0.0.1:{PORT}"
        env = {"NO_PROXY": "localhost,127.0.0.1,::1", "NODE_USE_ENV_PROXY": "1"}
        env |= dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), address)
        env |= {name.lower(): value for name, value in env.items() if name.endswith("PROXY")}
        env |= {one.variable: one.stand_in for one in self._grants}
        if self._grants:
            env |= dict.fromkeys(_TRUST, f"{FOLDER}/{_ROOTS}")
        shown = ((str(self._roots), _ROOTS),) if self._grants else ()
        return Network("door", door=str(self._socket), env=env, shown=shown)

    def _accept(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.create_task(self._one(reader, writer), name="egress")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _one(self, reader: StreamReader, writer: StreamWriter) -> None:
        try:
            async with asyncio.timeout(self._caps.seconds):
                await self._serve(reader, writer)
        except* (BadMessageError, OSError, TimeoutError) as group:
            log.info("egress: a connection ended: %s", group.exceptions[0])
        finally:
            await _close(writer)

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        try:
            async with asyncio.timeout(self._caps.head):
                head = await read_head(reader)
            if head is None:
                return
            self._check_caller(head)
            if len(self._tasks) > self._caps.connections:
                raise BadMessageError(f"more than {self._caps.connections} connections at once", status=503)
            if head.first == "CONNECT":
                await self._connect(head, (reader, writer))
            else:
                await self._plain(head, (reader, writer))
        except NetworkRefusedError as error:
            self._refused(error)
            await _tell((reader, writer), 403, error.present())
        except BadMessageError as error:
            await _tell((reader, writer), error.status, str(error))

    def _check_caller(self, head: Head) -> None:
        """Whoever can open our socket may ask. Raises `BadMessageError` where that is not enough."""

    def _refused(self, error: NetworkRefusedError) -> None:
        log.warning("egress: refused: %s", error)

    async def _connect(self, head: Head, inner: Ends) -> None:
        host, port = split(head.second, default=443)
        purse = self._admit(host, port)
        log.info("egress: CONNECT %s:%s%s", host, port, ", read for a secret" if purse else "")
        if purse and self._authority:
            await self._speak_for(host, port, inner=inner, purse=purse)
            return
        outer = await self._open(host, port, secure=False)
        try:
            inner[1].write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await tunnel(inner, outer, idle=self._caps.idle)
        finally:
            await _close(outer[1])

    async def _speak_for(self, host: str, port: int, *, inner: Ends, purse: Purse) -> None:
        """Be the server for the command, and the command for the server: one request."""
        assert self._authority is not None
        reader, writer = inner
        context = self._authority.context(host)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await writer.start_tls(context, ssl_handshake_timeout=self._caps.head)
        async with asyncio.timeout(self._caps.idle):
            head = await read_head(reader)
        if head is None:
            return
        if not head.second.startswith("/") and head.second != "*":
            raise BadMessageError("inside a tunnel, targets are paths")
        await self._carry(head, head.second, host=host, port=port, inner=inner, purse=purse, secure=True)

    async def _plain(self, head: Head, inner: Ends) -> None:
        try:
            parts = urlsplit(head.second)
            host, port = split(parts.netloc.rpartition("@")[2], default=80)
        except ValueError:
            raise BadMessageError("the address is none") from None
        if parts.scheme.lower() != "http" or not host:
            raise BadMessageError("this is a proxy: ask for http://HOST/PATH, or CONNECT HOST:PORT")
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        purse = self._admit(host, port)
        log.info("egress: %s http://%s:%s", head.first, host, port)
        await self._carry(head, path, host=host, port=port, inner=inner, purse=purse, secure=False)

    async def _carry(
        self, head: Head, path: str, *, host: str, port: int, inner: Ends, purse: Purse, secure: bool
    ) -> None:
        outer = await self._open(host, port, secure=secure)
        name = f"[{host}]" if ":" in host else host
        said = name if port == (443 if secure else 80) else f"{name}:{port}"
        try:
            async with asyncio.timeout(self._caps.seconds):
                code = await exchange(head, path, host=said, inner=inner, outer=outer, purse=purse)
            log.info("egress: %s %s answered %s", head.first, said, code)
        finally:
            await _close(outer[1])

    def _admit(self, host: str, port: int) -> Purse:
        """The secrets for a host that may be reached. Raises `NetworkRefusedError` that names the setting."""
        granted = [one for one in self._grants if one.admits(host, port)]
        if not granted and not any(one.admits(host, port) for one in self._hosts):
            raise NetworkRefusedError(
                f"{host}:{port} is not among the hosts that commands may reach (egress.hosts).",
                hint="The owner can add it to egress.hosts in the configuration.",
            )
        self._guard.check_host(host)
        return Purse(granted)

    async def _open(self, host: str, port: int, *, secure: bool) -> Ends:
        """A connection to an address that the guard has seen. Raises `NetworkRefusedError`, `BadMessageError`."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._caps.connect):
                found = await loop.getaddrinfo(host, port, type=2)
                addresses = list(dict.fromkeys(str(place[0]) for *_, place in found))
                for address in addresses:
                    self._guard.check_address(address, host=host)
                context = (self._trust or ssl.create_default_context()) if secure else None
                return await _first(addresses, port, context=context, host=host)
        except ssl.SSLError as error:
            raise BadMessageError(f"{host} cannot be trusted: {error}", status=502) from None
        except (OSError, UnicodeError) as error:  # a timeout too
            raise BadMessageError(f"{host}:{port} cannot be reached: {error}", status=502) from None


async def _first(addresses: list[str], port: int, *, context: ssl.SSLContext | None, host: str) -> Ends:
    """The first that takes the connection. Raises `OSError` of the last."""
    fault: OSError = OSError("it has no address")
    for address in addresses:
        try:
            name = host if context else None
            return await asyncio.open_connection(address, port, ssl=context, server_hostname=name, limit=LARGEST_HEAD)
        except ssl.SSLError:
            raise
        except OSError as error:
            fault = error
    raise fault


async def _tell(inner: Ends, status: int, text: str) -> None:
    """Refuse, in the status line too: of a tunnel that was refused, programs show only that.

    What still comes is read for a moment: a connection closed before would be reset, and the answer lost.
    """
    reader, writer = inner
    line = " ".join(text.split())
    data = f"limpet: {text}\n".encode()
    headers = [
        ("Content-Type", "text/plain; charset=utf-8"),
        ("Content-Length", str(len(data))),
        ("Connection", "close"),
    ]
    if status == 407:
        headers.append(("Proxy-Authenticate", 'Basic realm="limpet"'))
    writer.write(write_head(f"HTTP/1.1 {status} {line[:300]}", headers) + data)
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(_LINGER):
            await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()
                while await reader.read(LARGEST_HEAD):
                    pass


async def _close(writer: StreamWriter) -> None:
    writer.close()
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(1):
            await writer.wait_closed()


def _write_private(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(data)


def _remove_dead(folder: Path) -> None:
    """What a process that was killed left."""
    for path in folder.glob("egress-*"):
        if not os.path.exists(f"/proc/{path.name.split('-')[1]}"):
            path.unlink(missing_ok=True)
