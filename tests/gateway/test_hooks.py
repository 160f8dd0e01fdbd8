"""Hooks of the configuration in a running gateway: each point is told of what happens there."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from limpet.assistant.ending import close_ended
from limpet.sandbox.probe import examine
from limpet.testing.channel import FakeChannel
from limpet.testing.fakes import Call, Reply
from limpet.testing.fakes.script import Seen
from limpet.types.hook import HookPoint
from tests.gateway.house import echo, house

REPORT = examine()
pytestmark = pytest.mark.skipif(REPORT.kind == "none", reason=f"no sandbox: {REPORT.reason}")
WATCHED = tuple(point for point in HookPoint.__args__ if point != "compacted")
WATCH = f"""
[[hooks]]
name = "watch"
points = {json.dumps(WATCHED)}
command = "cat >> events.jsonl"
"""


def script(seen: Seen) -> Reply:
    if "please" in str(seen.body) and "'role': 'tool'" not in str(seen.body):
        return Reply(calls=(Call("list_dir", '{"path": "."}'),))
    return echo(seen)


def told(home: Path) -> list[dict[str, object]]:
    lines = (home / "workspace" / "events.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_every_point_is_told_in_a_gateway(home: Path) -> None:
    async def main() -> None:
        fake = FakeChannel()
        async with house(home, fake, script=script, config=WATCH) as here:
            await fake.say("please")
            await fake.until(lambda: len(fake.answers("ann")) == 1, within=30)
            await fake.say("/new")
            await fake.until(lambda: len(fake.answers("ann")) == 2, within=30)
            async with here.agents.use("main") as services:
                await close_ended(services, "agent:main:fake:direct:ann")

    asyncio.run(main())
    events = told(home)
    assert {str(one["point"]) for one in events} == set(WATCHED)
    assert (events[0]["point"], events[-1]["point"]) == ("gateway_started", "gateway_stopped")
    (ended,) = [one for one in events if one["point"] == "session_ended"]
    assert ended["reason"] == "new"
    said = [one["text"] for one in events if one["point"] == "message_sending"]
    assert str(said[0]).startswith("echo:")
