"""C24: what was sent once is sent again, byte for byte, whatever happens around it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from limpet.cli.door import Entrance, Nobody
from limpet.config.schema import Settings, ToolSettings, UserSettings
from limpet.config.secrets import SecretRedactor
from limpet.prompt.templates import seed_workspace
from limpet.sandbox.run import Sandbox
from limpet.testing.clock import FakeClock
from limpet.testing.fakes.anthropic import FakeAnthropic
from limpet.testing.fakes.openai import FakeOpenAI
from limpet.testing.fakes.script import Call, Reply
from limpet.testing.fakes.server import FakeServer
from limpet.wiring import Toolbox, WorkspacePrompting
from tests.cases.stage import Stage, stage

DAY = 24 * 3600
ALMOST_MIDNIGHT = 1_764_547_259_000  # 2025-12-01T00:00:59Z


@asynccontextmanager
async def with_real_prompt(folder: Path, server: FakeServer, reference: str) -> AsyncGenerator[tuple[Stage, FakeClock]]:
    """A stage whose prompt is made of the files of its workspace, at a time the test sets."""
    clock = FakeClock(ALMOST_MIDNIGHT)
    async with stage(folder, server, reference) as one, Sandbox() as sandbox:
        seed_workspace(str(one.workspace), bootstrap=True)
        prompting = WorkspacePrompting(
            str(one.workspace),
            Settings(user=UserSettings(timezone="UTC")),
            Entrance(emit=one.trace.emit, approvals=Nobody()),
            redactor=SecretRedactor({}),
            clock=clock,
            tools=Toolbox(sandbox, ToolSettings()),
        )
        yield Stage(replace(one.services, clock=clock, prompting=prompting), one.trace), clock


def without_marks(value: object) -> object:
    """`value` without the break points of the cache, which wander and are no content."""
    if isinstance(value, dict):
        return {key: without_marks(item) for key, item in value.items() if key != "cache_control"}  # pyright: ignore
    return [without_marks(item) for item in value] if isinstance(value, list) else value  # pyright: ignore


@pytest.mark.parametrize(
    ("kind", "reference"), [(FakeOpenAI, "openai/gpt-4o"), (FakeAnthropic, "anthropic/claude-sonnet-4-5")]
)
def test_c24_each_request_begins_with_the_one_before(
    tmp_path: Path, kind: type[FakeOpenAI] | type[FakeAnthropic], reference: str
) -> None:
    script = [
        Reply(text=("looking",), calls=(Call("list_dir"),)),
        Reply(text=("one",)),
        Reply(text=("two",)),
        Reply(text=("three",)),
    ]

    async def main() -> None:
        async with kind(script) as server, with_real_prompt(tmp_path, server, reference) as (one, clock):
            await one.say("first")
            clock.advance(2)
            await one.say("second")
            (one.workspace / "MEMORY.md").write_text("# Memory\n\n- The owner likes tea.\n")
            clock.advance(DAY)
            await one.say("third")
            assert server.refusals == []
            bodies = [without_marks(seen.body) for seen in server.requests]
            for before, after in pairwise(bodies):
                assert isinstance(before, dict)
                assert isinstance(after, dict)
                assert after.get("system") == before.get("system")
                assert json.dumps(after["tools"]) == json.dumps(before["tools"])
                assert after["messages"][: len(before["messages"])] == before["messages"]
            last = json.dumps(bodies[-1])
            assert last.count("likes tea") == 1
            assert last.count("2025-12-01") == 2
            assert last.count("2025-12-02") == 1

    asyncio.run(main())


def test_the_first_request_of_a_fresh_workspace_is_small(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeAnthropic([Reply(text=("hi",))]) as server:
            async with with_real_prompt(tmp_path, server, "anthropic/claude-sonnet-4-5") as (one, _):
                await one.say("Hello")
            assert len(server.requests[0].raw) <= 14_000

    asyncio.run(main())
