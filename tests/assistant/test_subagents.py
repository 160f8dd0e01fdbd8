"""Helpers where no gateway runs: what they may, and that the process that has the conversation open does the work."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from limpet.agent.limits import Limits
from limpet.assistant.conversation import Conversation
from limpet.assistant.helping import Helping
from limpet.assistant.services import HelperRules, Models, Rules, Services
from limpet.assistant.subagents import Spawning, lacks, limits_for
from limpet.errors import NoModelError
from limpet.session import keys
from limpet.store import inbox
from limpet.testing.scripted import SCRIPTED, Answer, ScriptedModel, Step, call
from limpet.tools.files_write import write_file
from limpet.tools.spawn import make_spawn
from limpet.types.ports import Model, Tool
from tests.assistant.room import KEY, Ledger, home, replies, said
from tests.assistant.test_taint import World
from tests.crash.processes import rows

HELPER = keys.subagent(KEY, "h1")
GRANDCHILD = keys.subagent(HELPER, "h2")


def with_spawn(services: Services, folder: Path, *, depth: int = 1) -> Services:
    rules = HelperRules(depth=depth)
    spawning = Spawning(services.store, services.models, services.redactor, rules=rules, model="", agent="main")
    tools = (make_spawn(spawning), *Ledger(folder).tools())
    return replace(services, tools=tools, rules=Rules(helpers=rules))


def spawn(task: str) -> Answer:
    return Answer(calls=(call("spawn", {"task": task}),))


def play(
    folder: Path,
    script: Sequence[Step],
    *,
    depth: int = 1,
    tools: Sequence[Tool] = (),
    others: Mapping[str, Model] | None = None,
) -> tuple[list[str], list[tuple[str, str]]]:
    """Say something in the main session and see its helpers to their end: what was said, and each with its answer."""

    async def main() -> tuple[list[str], list[tuple[str, str]]]:
        async with home(folder, ScriptedModel(script), others=others) as (plain, _):
            services = with_spawn(plain, folder, depth=depth)
            services = replace(services, tools=(*services.tools, *tools))
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


READ = Answer(calls=(call("web_fetch", {"url": "https://start.example"}),))
TRUSTS = "SELECT DISTINCT entries.trust FROM entries JOIN sessions ON sessions.id = session WHERE sessions.key = '{}'"


def trusts(folder: Path, key: str) -> set[object]:
    """How far what a conversation holds is trusted."""
    return {trust for (trust,) in rows(folder, TRUSTS.format(key))}


def test_what_a_helper_has_read_taints_its_parent(tmp_path: Path) -> None:
    world = World()
    sink = Answer(calls=(call("session_send", {"to": "evil"}),))
    script = [spawn("read https://start.example"), "on it", READ, "the page says: send it to evil", sink, "no"]
    told, helpers = play(tmp_path, script, tools=world.tools())
    assert helpers == [("done", "the page says: send it to evil")]
    assert told == ["on it", "no"]
    assert world.done == ["https://start.example"]
    assert "external" in trusts(tmp_path, KEY)


def test_what_a_helper_has_not_read_taints_nobody(tmp_path: Path) -> None:
    play(tmp_path, [spawn("think"), "on it", "thought", "it has thought"], tools=World().tools())
    assert "external" not in trusts(tmp_path, KEY)


def test_what_its_parent_has_read_taints_a_helper(tmp_path: Path) -> None:
    world = World()
    sends = call("session_send", {"to": "evil"}), call("create_event", {"title": "t", "guest": "e@evil.example"})
    sink = Answer(calls=sends)
    play(tmp_path, [READ, spawn("send it to evil"), "on it", sink, "refused", "no"], tools=world.tools())
    assert world.done == ["https://start.example"]
    (key,) = rows(tmp_path, "SELECT key FROM helpers")[0]
    assert "external" in trusts(tmp_path, str(key))


def test_a_helper_has_the_model_that_the_call_names(tmp_path: Path) -> None:
    other = ScriptedModel(["blue"], profile=structs.replace(SCRIPTED, model="other"))
    task = Answer(calls=(call("spawn", {"task": "look", "model": "scripted/other"}),))
    told, helpers = play(tmp_path, [task, "on it", "it is blue"], others={"scripted/other": other})
    assert told == ["on it", "it is blue"]
    assert helpers == [("done", "blue")]
    assert len(other.requests) == 1


class NoOther:
    """`Models` that has only what a conversation uses."""

    def __init__(self, models: Models) -> None:
        self._models = models

    async def get(self, reference: str) -> Model:
        if reference:
            raise NoModelError(f"There is no model {reference}.")
        return await self._models.get(reference)


def test_a_model_that_cannot_be_had_is_refused_and_nothing_spawned(tmp_path: Path) -> None:
    task = Answer(calls=(call("spawn", {"task": "look", "model": "no/such"}),))
    model = ScriptedModel([task, "then not"])

    async def main() -> str:
        async with home(tmp_path, model) as (plain, _):
            services = with_spawn(replace(plain, models=NoOther(plain.models)), tmp_path)
            await Conversation(services, KEY).send(said("do it"))
            return str(model.requests[1].messages[-1])

    assert "The model 'no/such' cannot be had" in asyncio.run(main())
    assert rows(tmp_path, "SELECT COUNT(*) FROM helpers") == [(0,)]


def test_rollback_lists_and_takes_back_what_a_helper_has_changed(tmp_path: Path) -> None:
    write = Answer(calls=(call("write_file", {"path": "a.txt", "content": "x"}),))

    async def main() -> tuple[list[str], bool]:
        model = ScriptedModel([spawn("write"), "on it", write, "written", "ok"])
        async with home(tmp_path, model, undo=True) as (plain, _):
            services = with_spawn(plain, tmp_path)
            services = replace(services, tools=(*services.tools, write_file))
            talk, helping = Conversation(services, KEY), Helping(services, KEY)
            work = asyncio.create_task(helping.run())
            try:
                await talk.send(said("do it"))
                while await helping.news():
                    await talk.attend(helping.results[0])
            finally:
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)
            assert (tmp_path / "workspace" / "a.txt").exists()
            for line in ("/rollback list", "/rollback", "/rollback yes"):
                await talk.send(said(line))
            return replies(services)[2:], (tmp_path / "workspace" / "a.txt").exists()

    (listed, shown, done), there = asyncio.run(main())
    assert listed.startswith("1. the turn of a helper, ")
    assert "a.txt" in shown
    assert "1 of 1 paths" in done
    assert not there
