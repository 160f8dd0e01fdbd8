"""Short ways to a wire at a fake server, and to requests, for tests and examples."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from msgspec import Raw, structs

from limpet.llm.build import LOCAL_FACTOR, wire_of
from limpet.llm.http import Deadlines, Http
from limpet.llm.metered import Countable
from limpet.llm.wire.service import Witness
from limpet.testing.fakes.server import FakeServer
from limpet.types.content import Text
from limpet.types.event import Done, ModelEvent
from limpet.types.message import AssistantMessage, Message, Request, Sampling, ToolChoice, UserMessage
from limpet.types.ports import Blobs, Lessons, Model, Traces
from limpet.types.profile import Profile
from limpet.types.tool import ToolSpec

OBJECT = Raw(b'{"type":"object","properties":{}}')


class MemoryBlobs:
    """A `Blobs` that keeps everything in memory."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    async def put(self, data: bytes) -> str:
        name = hashlib.sha256(data).hexdigest()
        self._kept[name] = data
        return name

    def path(self, blob: str) -> str:
        raise FileNotFoundError(blob)

    def get(self, blob: str) -> bytes:
        if blob not in self._kept:
            raise FileNotFoundError(blob)
        return self._kept[blob]


def tool(name: str, *, parameters: bytes = bytes(OBJECT), description: str = "a tool") -> ToolSpec:
    return ToolSpec(name=name, description=description, parameters=Raw(parameters))


def user(text: str, *, runtime: str = "") -> UserMessage:
    return UserMessage(content=(Text(text),), runtime=runtime)


def ask(
    *messages: Message,
    tools: Sequence[ToolSpec] = (),
    system: str = "You are Limpet.",
    session: str = "s1",
    sampling: Sampling | None = None,
    tool_choice: ToolChoice = "auto",
) -> Request:
    """A request; without messages the user says Hi."""
    return Request(
        session=session,
        system=system,
        tools=tuple(tools),
        messages=messages or (user("Hi"),),
        tool_choice=tool_choice,
        sampling=sampling or Sampling(),
    )


@asynccontextmanager
async def wire_at(
    server: FakeServer,
    profile: Profile,
    *,
    deadlines: Deadlines | None = None,
    blobs: Blobs | None = None,
    key: str | None = None,
    witness: tuple[Lessons | None, Traces | None] = (None, None),
) -> AsyncGenerator[Countable, None]:
    """The wire that `profile` names, speaking to `server` with its key or another one."""
    base = server.base_url.removesuffix("/v1") if profile.wire == "anthropic" else server.base_url
    at = structs.replace(profile, base_url=base)
    limits = deadlines or Deadlines()
    http = Http(at.provider, deadlines=limits.times(LOCAL_FACTOR) if at.local else limits)
    model = wire_of(at, server.key if key is None else key, blobs=blobs, http=http, witness=Witness(*witness))
    try:
        yield model
    finally:
        await model.close()


async def collect(model: Model, request: Request) -> list[ModelEvent]:
    """All events of one answer."""
    return [event async for event in model.stream(request)]


async def answer_of(model: Model, request: Request) -> AssistantMessage:
    """The message of one answer."""
    events = await collect(model, request)
    last = events[-1]
    if not isinstance(last, Done):
        raise AssertionError(f"the stream ends with {last!r}")
    return last.message
