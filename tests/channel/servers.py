"""Real servers of chat platforms as child processes, and a relay before them that can be broken."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import os
import shutil
import socket
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Self

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

SYSTEM = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))


def program(name: str, package: str) -> str:
    """Where a server is. Skips the test when it is not installed."""
    found = shutil.which(name, path=SYSTEM)
    if found is None:
        pytest.skip(f"{name} is not installed (Debian package {package})")
    return found


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextlib.asynccontextmanager
async def served(*command: str, port: int, log: Path) -> AsyncGenerator[None]:
    """A server that listens on `port`; ended at the end, whatever it takes."""
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
    try:
        async with asyncio.timeout(20):
            while not await _listens(port):
                assert process.returncode is None, log.read_text("utf-8", "replace")
                await asyncio.sleep(0.02)
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), 5)
        except TimeoutError:
            os.killpg(process.pid, 9)
            await process.wait()


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True


class Relay:
    """Stands before the server on `target`. `deaf`: what the server says gets lost. `watch` sees what passes.

    `watch(from_server, data)`.
    """

    def __init__(self, target: int, watch: Callable[[bool, bytes], None] = lambda _from_server, _data: None) -> None:
        self.deaf = False
        self._watch = watch
        self._target = target
        self._port = 0
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        return self._port

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", self._port)
        self._port = int(self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        self.cut()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)
        self._server = None

    def cut(self) -> None:
        """Break the connections that stand."""
        for writer in self._open:
            writer.transport.abort()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._open.add(writer)
        try:
            above, below = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        self._open.add(below)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, below, from_server=False))
                group.create_task(self._pump(above, writer, from_server=True))
        finally:
            for one in (writer, below):
                one.transport.abort()
                self._open.discard(one)
            self._tasks.discard(task)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, from_server: bool) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                if not (self.deaf and from_server):
                    self._watch(from_server, data)
                    writer.write(data)
                    await writer.drain()
        writer.transport.abort()


def certificate(folder: Path) -> str:
    """A certificate of `localhost` that signs itself, in `folder`; its key is `key.pem` beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    (folder / "key.pem").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    (folder / "cert.pem").write_bytes(made.public_bytes(pem))
    return str(folder / "cert.pem")
