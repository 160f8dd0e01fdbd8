"""Durable approvals: stored before anybody is asked, decided by the owner, good for exactly one plan."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from limpet.assistant import approvals
from limpet.assistant.conversation import Conversation
from limpet.errors import InputError, TurnStopped
from limpet.store import approvals as rows
from limpet.store import inbox, turns
from limpet.testing.clock import FakeClock
from limpet.testing.scripted import Answer, ScriptedModel, Step, call
from limpet.toolkit.schema import tool
from limpet.tools.ask import ask
from limpet.types.approval import Approval, Reply, Word
from limpet.types.content import Text
from limpet.types.envelope import Address, Inbound
from limpet.types.message import ToolMessage, UserMessage
from limpet.types.ports import EVERYWHERE, BoundCall, Scope, Tool, ToolContext, Verdict
from limpet.types.tool import ToolResult, text_result
from tests.assistant.room import KEY, home, replies, said


class AskForActs:
    def decide(self, tool: Tool, call: BoundCall, scope: Scope = EVERYWHERE) -> Verdict:
        return Verdict("ask", "it acts") if tool.effect == "unsafe" else Verdict("allow")


class Person:
    """Answers in turn what it was told to; None is `later`. `asked` are the plans it was shown."""

    can_ask = True

    def __init__(self, *words: Word | None) -> None:
        self._words = list(words)
        self.asked: list[str] = []

    async def ask(self, approval: Approval) -> Reply | None:
        self.asked.append(approval.wanted.plan)
        word = self._words.pop(0)
        return None if word is None else Reply(word)


class Stopping(Person):
    async def ask(self, approval: Approval) -> Reply | None:
        raise TurnStopped("Stopped.")


class World:
    """A tool that acts on the world and one that looks; `done` is what happened."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def tools(self) -> tuple[Tool, ...]:
        @tool(effect="unsafe")
        async def act(context: ToolContext, word: str) -> ToolResult:
            """Act."""
            self.done.append(word)
            return text_result(f"did {word}")

        @tool(effect="pure")
        async def look(context: ToolContext, word: str) -> ToolResult:
            """Look."""
            self.done.append(word)
            return text_result(f"saw {word}")

        return (act, look)


def acts(*words: str) -> Answer:
    return Answer(calls=tuple(call("act", {"word": word}) for word in words))


class Stage:
    """A home that is opened again and again, each time as another process would; one model and one world for all."""

    def __init__(self, folder: Path, script: list[Step]) -> None:
        self.folder = folder
        self.model = ScriptedModel(script)
        self.world = World()
        self.clock = FakeClock()

    async def visit(self, person: object, *texts: str) -> list[str]:
        """Open the conversation, say `texts`; gives all replies so far."""
        async with home(self.folder, self.model, tools=self.world.tools()) as (services, _):
            services = replace(services, policy=AskForActs(), approvals=person, clock=self.clock)
            conversation = Conversation(services, KEY)
            await conversation.recover()
            for text in texts:
                await conversation.send(said(text))
            return replies(services)

    async def read(self, look: Callable[..., object]) -> object:
        async with home(self.folder, self.model) as (services, _):
            return services.store.read(look)

    def results(self) -> list[str]:
        sent = [message for message in self.model.requests[-1].messages if isinstance(message, ToolMessage)]
        return ["".join(block.text for block in message.content if isinstance(block, Text)) for message in sent]


class Absent:
    can_ask = False

    async def ask(self, approval: Approval) -> Reply | None:
        raise AssertionError("nobody was there")


def state(connection: object) -> object:
    return connection.execute("SELECT state, attempts FROM turns").fetchall()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("word", "done", "result"), [("once", ["a"], "did a"), ("deny", [], "Not approved by the owner: it acts")]
)
def test_what_the_person_here_says_is_done(tmp_path: Path, word: Word, done: list[str], result: str) -> None:
    stage, person = Stage(tmp_path, [acts("a"), "all done"]), Person(word)
    assert asyncio.run(stage.visit(person, "go")) == ["all done"]
    assert person.asked == ['act word="a"']
    assert (stage.world.done, stage.results()) == (done, [result])


def test_with_nobody_to_ask_the_answer_is_no_at_once(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [acts("a"), "all done"])
    assert asyncio.run(stage.visit(Absent(), "go")) == ["all done"]
    assert stage.world.done == []
    assert stage.results() == ["Not approved, for nobody can be asked here: it acts"]


def test_a_turn_that_waits_holds_no_lease_and_survives_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        stage = Stage(tmp_path, [acts("a"), "all done"])
        assert await stage.visit(Person(None), "go") == []
        assert await stage.read(state) == [("waiting", 1)]
        owners = await stage.read(lambda connection: connection.execute("SELECT owner FROM sessions").fetchall())
        assert owners == [("",)]
        assert await stage.visit(Person("once")) == ["all done"]
        assert stage.world.done == ["a"]
        assert await stage.read(state) == [("done", 1)]

    asyncio.run(main())


def test_it_can_be_decided_where_nobody_else_could_be_asked(tmp_path: Path) -> None:
    async def main() -> None:
        stage = Stage(tmp_path, [acts("a"), "all done"])
        await stage.visit(Person(None), "go")
        assert (await stage.visit(Absent(), "/approve"))[-1] == "all done"
        assert stage.world.done == ["a"]

    asyncio.run(main())


def test_always_covers_exactly_this_plan_and_can_be_revoked(tmp_path: Path) -> None:
    async def main() -> None:
        stage = Stage(tmp_path, [acts("a"), "1", acts("a"), "2", acts("b"), "3", acts("a"), "4"])
        person = Person("always", "deny", "deny")
        await stage.visit(person, "one", "two", "three")
        assert person.asked == ['act word="a"', 'act word="b"']
        (grant,) = await stage.read(lambda connection: rows.recent(connection, "always", now=0))  # type: ignore[misc]
        async with home(tmp_path, stage.model) as (services, _):
            assert await services.store.write(lambda connection: rows.revoke(connection, grant.id, now=1))
        await stage.visit(person, "four")
        assert person.asked[2:] == ['act word="a"']
        assert stage.world.done == ["a", "a"]

    asyncio.run(main())


def test_calls_of_one_batch_wait_side_by_side_and_run_once_each(tmp_path: Path) -> None:
    async def main() -> None:
        batch = Answer(calls=(*acts("a", "b").calls, call("look", {"word": "c"})))
        stage = Stage(tmp_path, [batch, "all done"])
        await stage.visit(Person("once", None), "go")
        assert sorted(stage.world.done) == ["a", "c"]
        assert await stage.visit(Person("deny")) == ["all done"]
        assert sorted(stage.world.done) == ["a", "c"]
        assert stage.results() == ["did a", "Not approved by the owner: it acts", "saw c"]

    asyncio.run(main())


def test_too_late_is_no_and_the_turn_ends_cleanly(tmp_path: Path) -> None:
    async def main() -> None:
        stage = Stage(tmp_path, [acts("a"), "all done"])
        await stage.visit(Person(None), "go")
        stage.clock.advance(3_601)
        assert await stage.visit(Absent()) == ["all done"]
        assert stage.world.done == []
        assert stage.results() == ["Not approved, for nobody answered within 60 minutes: it acts"]

    asyncio.run(main())


def test_what_is_said_meanwhile_is_taken_after_the_batch(tmp_path: Path) -> None:
    async def main() -> None:
        stage = Stage(tmp_path, [acts("a"), "all done"])
        await stage.visit(Person(None), "go")
        await stage.visit(Absent(), "and hurry")
        waiting = await stage.read(lambda connection: inbox.queued(connection, KEY))
        assert [row.inbound.text for row in waiting] == ["and hurry"]  # type: ignore[attr-defined]
        await stage.visit(Person("once"))
        assert [type(message) for message in stage.model.requests[-1].messages][-2:] == [ToolMessage, UserMessage]

    asyncio.run(main())


@pytest.mark.parametrize("how", ["said", "at the question"])
def test_stop_settles_what_waits_as_denied(tmp_path: Path, how: str) -> None:
    async def main() -> None:
        stage = Stage(tmp_path, [acts("a"), "never"])
        if how == "said":
            await stage.visit(Person(None), "go")
            await stage.visit(Absent(), "/stop")
        else:
            await stage.visit(Stopping(), "go")
        assert await stage.read(state) == [("cancelled", 1)]
        (row,) = await stage.read(lambda connection: rows.recent(connection, "all", now=0))  # type: ignore[misc]
        assert (row.outcome, stage.world.done) == ("deny", [])

    asyncio.run(main())


def test_only_the_owner_decides(tmp_path: Path) -> None:
    async def main() -> None:
        stage = Stage(tmp_path, [acts("a"), "all done"])
        await stage.visit(Person(None), "go")
        async with home(tmp_path, stage.model, tools=stage.world.tools()) as (services, _):
            (row,) = services.store.read(lambda connection: rows.open_under(connection, KEY, now=0))
            with pytest.raises(InputError, match="Only the owner"):
                await approvals.decide(services, row.id, Reply("once"), who="telegram::mallory")
            conversation = Conversation(replace(services, policy=AskForActs()), KEY)
            stranger = Inbound(Address("chat", chat="1"), event="x", text="/approve", sender="mallory", trust="peer")
            await conversation.send(stranger)
            assert replies(services) == ["Only the owner may decide this."]
            assert stage.world.done == []

    asyncio.run(main())


def test_another_process_decides_while_the_person_here_still_thinks(tmp_path: Path) -> None:
    class Thinking(Person):
        async def ask(self, approval: Approval) -> Reply | None:
            self.asked.append(approval.id)
            await asyncio.sleep(60)
            raise AssertionError("still asked")

    async def main() -> None:
        stage, person = Stage(tmp_path, [acts("a"), "all done"]), Thinking()
        visit = asyncio.create_task(stage.visit(person, "go"))
        async with asyncio.timeout(20):
            while not person.asked:
                await asyncio.sleep(0.01)
            async with home(tmp_path, stage.model) as (other, _):
                await approvals.decide(other, person.asked[0], Reply("once"), who=approvals.TERMINAL)
            assert await visit == ["all done"]
        assert stage.world.done == ["a"]

    asyncio.run(main())


def test_a_changed_plan_asks_anew(tmp_path: Path) -> None:
    async def main() -> None:
        stage = Stage(tmp_path, [acts("a"), "all done"])
        await stage.visit(Person(None), "go")
        person = Person("deny")
        async with home(tmp_path, stage.model, tools=stage.world.tools()) as (services, _):
            (row,) = services.store.read(lambda connection: rows.open_under(connection, KEY, now=0))
            await approvals.decide(services, row.id, Reply("once"), who=approvals.TERMINAL)
            elsewhere = replace(services, policy=AskForActs(), approvals=person, workspace="/elsewhere")
            await Conversation(elsewhere, KEY).recover()
        assert (person.asked, stage.world.done) == (['act word="a"'], [])

    asyncio.run(main())


def test_a_decision_does_not_count_as_a_crash(tmp_path: Path) -> None:
    async def main() -> None:
        stage = Stage(tmp_path, [acts(word) for word in "abcde"] + ["all done"])
        await stage.visit(Person(None), "go")
        for _ in range(4):
            await stage.visit(Person("once", None))
        assert await stage.visit(Person("once")) == ["all done"]
        found = await stage.read(lambda connection: turns.newest(connection, _session(connection)))
        assert found.attempts == 1  # type: ignore[attr-defined]

    asyncio.run(main())


def _session(connection: object) -> str:
    return str(connection.execute("SELECT id FROM sessions").fetchone()[0])  # type: ignore[attr-defined]


class Answering(Person):
    async def ask(self, approval: Approval) -> Reply | None:
        return Reply("answer", approval.wanted.choices[1])


QUESTION = call("ask", {"question": "Which one?", "choices": ["red", "blue"], "only_choices": True})


def asking(folder: Path) -> Stage:
    stage = Stage(folder, [Answer(calls=(QUESTION,)), "all done"])
    stage.world.tools = lambda: (ask,)  # type: ignore[method-assign]
    return stage


def test_a_question_is_answered_here(tmp_path: Path) -> None:
    stage = asking(tmp_path)
    assert asyncio.run(stage.visit(Answering(), "go")) == ["all done"]
    assert stage.results() == ["blue"]


def test_a_question_with_nobody_there_is_an_error_at_once(tmp_path: Path) -> None:
    stage = asking(tmp_path)
    assert asyncio.run(stage.visit(Absent(), "go")) == ["all done"]
    assert stage.results()[0].startswith("Not answered, for nobody can be asked here")


def test_a_question_is_answered_later_and_only_with_a_choice(tmp_path: Path) -> None:
    async def main() -> None:
        stage = asking(tmp_path)
        await stage.visit(Person(None), "go")
        assert (await stage.visit(Absent(), "/answer green"))[-1] == "Only these are answers: red, blue."
        assert (await stage.visit(Absent(), "/answer red"))[-1] == "all done"
        assert stage.results() == ["red"]

    asyncio.run(main())
