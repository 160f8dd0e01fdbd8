"""Helpers where no gateway runs: what they may, and that the process that has the conversation open does the work."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from limpet.agent.limits import Limits
from limpet.assistant.conversation import Conversation
from limpet.assistant.helping import Helping
from limpet.assistant.services import HelperRules, Rules, Services
from limpet.assistant.subagents import Spawning, lacks, limits_for
from limpet.session import keys
from limpet.store import inbox
from limpet.testing.scripted import Answer, ScriptedModel, Step, call
from limpet.tools.spawn import make_spawn
from tests.assistant.room import KEY, Ledger, home, replies, said

HELPER = keys.subagent(KEY, "h1")
GRANDCHILD = keys.subagent(HELPER, "h2")


def with_spawn(services: Services, folder: Path, *, depth: int = 1) -> Services:
    rules = HelperRules(depth=depth)
    spawning = Spawning(services.store, services.models, services.redactor, rules=rules, model="", agent="main")
    tools = (make_spawn(spawning), *Ledger(folder).tools())
    return replace(services, tools=tools, rules=Rules(helpers=rules))


def spawn(task: str) -> Answer:
    return Answer(calls=(call("spawn", {"task": task}),))


def play(folder: Path, script: Sequence[Step], *, depth: int = 1) -> tuple[list[str], list[tuple[str, str]]]:
    """Say something in the main session and see its helpers to their end: what was said, and each with its answer."""

    async def main() -> tuple[list[str], list[tuple[str, str]]]:
        async with home(folder, ScriptedModel(script)) as (plain, _):
            services = with_spawn(plain, folder, depth=depth)
            talk, helping = Conversation(services, KEY), Helping(services, KEY)
            work = asyncio.create_task(helping.run())
            try:
                await talk.send(said("do it"))
                async with asyncio.timeout(30):
                    while await helping.news():
                        await talk.attend(helping.results[0])
            finally:
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)
            query = "SELECT state, answer FROM helpers ORDER BY rowid"
            rows = services.store.read(lambda connection: connection.execute(query).fetchall())
            assert not services.store.read(inbox.keys_waiting)
            return replies(services), [(str(state), str(answer)) for state, answer in rows]

    return asyncio.run(main())


def test_the_process_that_has_the_conversation_open_does_the_work(tmp_path: Path) -> None:
    told, helpers = play(tmp_path, [spawn("look"), "on it", "blue", "it is blue"])
    assert told == ["on it", "it is blue"]
    assert helpers == [("done", "blue")]


def test_c58a_a_helper_that_spawns_is_refused_with_the_reason(tmp_path: Path) -> None:
    told, helpers = play(tmp_path, [spawn("look"), "on it", spawn("look for me"), "did it myself", "done"])
    assert told == ["on it", "done"]
    assert helpers == [("done", "did it myself")]


def test_a_helper_with_helpers_is_over_when_it_has_heard_of_them(tmp_path: Path) -> None:
    script = [spawn("look"), "on it", spawn("look deeper"), "waiting", "deep blue", "deep blue, it says", "all done"]
    told, helpers = play(tmp_path, script, depth=2)
    assert told == ["on it", "all done"]
    assert helpers == [("done", "deep blue, it says"), ("done", "deep blue")]


@pytest.mark.parametrize("tool", ["message", "session_send", "ask", "cron_add", "spawn"])
def test_what_a_helper_lacks(tool: str) -> None:
    assert lacks(HELPER, tool, depth=1)
    assert not lacks(KEY, tool, depth=1)


def test_depth_says_how_deep_helpers_may_spawn() -> None:
    assert not lacks(HELPER, "spawn", depth=2)
    assert lacks(GRANDCHILD, "spawn", depth=2)


def test_the_limits_of_a_helper_only_narrow() -> None:
    rules = HelperRules(limits=Limits(steps=10, minutes=60.0, dollars=0.5))
    assert limits_for(KEY, Limits(), rules) == Limits()
    assert limits_for(HELPER, Limits(), rules) == Limits(steps=10, minutes=30.0, dollars=0.5)
