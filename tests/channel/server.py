"""Real servers for tests: each on loopback, on a port of its own, in a folder of its own, and ended for certain."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest


def needed(program: str) -> str:
    """The path of a server's program; the test is skipped where it is not installed."""
    found = shutil.which(program) or shutil.which(program, path="/usr/sbin:/usr/local/sbin")
    if found is None:
        pytest.skip(f"{program} is not installed")
    return found


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    """A server process; `port` is where it listens, `log` what it says."""

    def __init__(self, argv: Sequence[str], *, folder: Path, port: int) -> None:
        self._argv = argv
        self._folder = folder
        self.port = port
        self._process: asyncio.subprocess.Process | None = None

    @property
    def log(self) -> str:
        return (self._folder / "server.log").read_text("utf-8", "replace")

    async def start(self, seconds: float = 60.0) -> None:
        """Until it listens."""
        with (self._folder / "server.log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._argv, cwd=self._folder, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        try:
            async with asyncio.timeout(seconds):
                while not await listens(self.port):
                    assert self._process.returncode is None, self.log
                    await asyncio.sleep(0.02)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True
