"""C24: what was sent once is sent again, byte for byte and on every wire, whatever happens around it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from msgspec import Raw, structs

from limpet.config.schema import Settings, ToolSettings, UserSettings
from limpet.config.secrets import SecretRedactor
from limpet.prompt.templates import seed_workspace
from limpet.prompt.workspace import WorkspacePrompting
from limpet.sandbox.run import Sandbox
from limpet.session.breaks import breaks
from limpet.testing.clock import FakeClock
from limpet.testing.fakes import (
    Call,
    FakeAnthropic,
    FakeBedrock,
    FakeGemini,
    FakeOpenAI,
    FakeResponses,
    Reply,
    Seen,
)
from limpet.testing.fakes.server import FakeServer
from limpet.toolbox import Toolbox
from limpet.types.entry import PromptEntry
from limpet.types.profile import Profile, Wire
from tests.cases.stage import Stage, stage

BEFORE_TURN_1 = 1_764_583_259_000  # 2025-12-01T10:00:59Z
TO_TURN_3 = 14 * 3600 - 56  # 2025-12-02T00:00:05Z
SERVICES: dict[Wire, tuple[Callable[..., FakeServer], str, str]] = {
    "openai_chat": (FakeOpenAI, "openai/gpt-4o", "messages"),
    "openai_responses": (FakeResponses, "openai/gpt-5.6-terra", "input"),
    "anthropic": (FakeAnthropic, "anthropic/claude-sonnet-5", "messages"),
    "gemini": (FakeGemini, "gemini/gemini-3.8-flash", "contents"),
    "bedrock": (FakeBedrock, "bedrock/us.anthropic.claude-sonnet-4-5-v1:0", "messages"),
}
MARKS = re.compile(rb',"cache_control":\{[^}]*\}|,\{"cachePoint":\{[^}]*\}\}')


class Reconnecting(WorkspacePrompting):
    """The workspace's prompting; once `reversed`, tools would be listed the other way round."""

    reversed = False

    def snapshot(self, profile: Profile, *, reason: str, before: str = "", key: str = "") -> PromptEntry:
        entry = super().snapshot(profile, reason=reason, before=before, key=key)
        return structs.replace(entry, tools=entry.tools[::-1]) if self.reversed else entry


@asynccontextmanager
async def with_real_prompt(
    folder: Path, server: FakeServer, reference: str, *, wire: Wire | None = None
) -> AsyncGenerator[tuple[Stage, FakeClock, Reconnecting]]:
    """A stage whose prompt is made of the files of its workspace, at a time the test sets."""
    clock = FakeClock(BEFORE_TURN_1)
    async with stage(folder, server, reference, wire=wire) as one, Sandbox() as sandbox:
        seed_workspace(str(one.workspace), bootstrap=True)
        prompting = Reconnecting(
            str(one.workspace),
            Settings(user=UserSettings(timezone="UTC")),
            redactor=SecretRedactor({}),
            clock=clock,
            tools=Toolbox(sandbox, ToolSettings()).specs,
            conversation=True,
            emit=one.trace.emit,
        )
        yield Stage(replace(one.services, clock=clock, prompting=prompting), one.trace), clock, prompting


class Sent(NamedTuple):
    """A body in its raw bytes without cache marks, which wander and are no content: what is before the messages (on
    all wires system and tools are there, or the first message is the system's), and each message.
    """

    head: bytes
    messages: list[bytes]


def sent(seen: Seen, key: str) -> Sent:
    raw = MARKS.sub(b"", seen.raw)
    parts = msgspec.json.decode(raw, type=dict[str, Raw])
    messages = msgspec.json.decode(parts[key], type=list[Raw])
    return Sent(raw[: raw.index(b'"%s":[' % key.encode())], [bytes(message) for message in messages])


@pytest.mark.parametrize("wire", SERVICES)
def test_c24_each_request_begins_with_the_bytes_of_the_one_before(tmp_path: Path, wire: Wire) -> None:
    kind, reference, key = SERVICES[wire]
    script = [
        Reply(text=("looking",), calls=(Call("list_dir"),)),
        Reply(text=("one",)),
        Reply(text=("two",)),
        Reply(text=("three",)),
    ]

    async def main() -> None:
        async with (
            kind(script) as server,
            with_real_prompt(tmp_path, server, reference, wire=wire) as (one, clock, prompting),
        ):
            await one.say("first")
            clock.advance(2)
            await one.say("second")
            (one.workspace / "MEMORY.md").write_text("# Memory\n\n- The owner likes tea.\n")
            prompting.reversed = True
            again = Stage(replace(one.services, tools=one.services.tools[::-1]), one.trace)
            clock.advance(TO_TURN_3)
            await again.say("third")
            assert server.refusals == []
            bodies = [sent(seen, key) for seen in server.requests]
            assert len(bodies) == 4
            for before, after in pairwise(bodies):
                assert after.head == before.head
                assert after.messages[: len(before.messages)] == before.messages
                assert len(after.messages) > len(before.messages)
            assert breaks(again.talk.log().entries) == []
            check_times(bodies)

    asyncio.run(main())


def check_times(bodies: list[Sent]) -> None:
    """Times and what has changed stand in the newest message of a person, in the turn they belong to, nowhere else."""
    last = bodies[-1]
    for body, time in zip((bodies[0], bodies[2], bodies[3]), (b"01 10:00", b"01 10:01", b"02 00:00"), strict=True):
        assert [b"2025-12-" + time in message for message in body.messages].index(True) == len(body.messages) - 1
    assert b"".join(last.messages).count(b"2025-12-0") == 3
    assert b"2025" not in last.head
    assert [b"likes tea" in message for message in last.messages] == [False] * (len(last.messages) - 1) + [True]


def test_the_first_request_of_a_fresh_workspace_is_small(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeAnthropic([Reply(text=("hi",))]) as server:
            async with with_real_prompt(tmp_path, server, "anthropic/claude-sonnet-4-5") as (one, _, _):
                await one.say("Hello")
            assert len(server.requests[0].raw) <= 14_000

    asyncio.run(main())
