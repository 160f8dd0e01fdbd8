"""A turn from its first commit to its last."""

from __future__ import annotations

import asyncio
from pathlib import Path

from limpet.agent.limits import Limits
from limpet.assistant.conversation import Conversation
from limpet.errors import CredentialError
from limpet.store import entries, sessions
from limpet.testing.scripted import Answer, ScriptedModel, call
from tests.assistant.room import KEY, Ledger, home, replies, said


def kinds(services: object) -> list[str]:
    rows = services.store.read(lambda c: c.execute("SELECT kind FROM entries ORDER BY seq").fetchall())  # pyright: ignore
    return [str(kind) for (kind,) in rows]


def test_a_turn_without_tools_takes_three_commits(tmp_path: Path) -> None:
    async def main() -> None:
        async with home(tmp_path, ScriptedModel(["hello"])) as (services, trace):
            row = await Conversation(services, KEY).send(said("hi"))
            assert row.state == "done"
            assert replies(services) == ["hello"]
            assert kinds(services) == ["prompt", "user", "assistant"]
            assert services.store.stats.groups == 3
            assert trace.text.splitlines()[0] == "turn T1 of S1 attempt 1"
            assert trace.text.splitlines()[-1] == "turn T1 done 'hello'"

    asyncio.run(main())


def test_tools_run_and_their_results_go_back(tmp_path: Path) -> None:
    async def main() -> None:
        ledger = Ledger(tmp_path)
        model = ScriptedModel([Answer(calls=(call("act", {"word": "a"}), call("look", {"word": "b"}))), "done"])
        async with home(tmp_path, model, tools=ledger.tools()) as (services, _):
            await Conversation(services, KEY).send(said("go"))
            assert sorted(ledger.ran) == ["a", "b"]
            assert kinds(services)[:4] == ["prompt", "user", "assistant", "tool_started"]
            assert kinds(services)[-1] == "assistant"
            second = model.requests[1].messages
            assert [block.text for message in second[-2:] for block in message.content] == ["did a", "saw b"]  # pyright: ignore

    asyncio.run(main())


def test_the_prefix_of_each_request_is_that_of_the_one_before(tmp_path: Path) -> None:
    async def main() -> None:
        model = ScriptedModel([Answer(calls=(call("act", {"word": "a"}),)), "one", "two"])
        async with home(tmp_path, model, tools=Ledger(tmp_path).tools()) as (services, _):
            talk = Conversation(services, KEY)
            await talk.send(said("first"))
            await talk.send(said("second"))
            for before, after in zip(model.requests, model.requests[1:], strict=False):
                assert after.system == before.system
                assert after.tools == before.tools
                assert after.messages[: len(before.messages)] == before.messages

    asyncio.run(main())


def test_a_failed_turn_is_told_and_the_next_one_works(tmp_path: Path) -> None:
    async def main() -> None:
        model = ScriptedModel([CredentialError("Incorrect API key provided", provider="openai", status=401), "hello"])
        async with home(tmp_path, model) as (services, _):
            talk = Conversation(services, KEY)
            await talk.send(said("hi"))
            await talk.send(said("again"))
            assert replies(services) == ["openai: Incorrect API key provided", "hello"]

    asyncio.run(main())


def test_retry_runs_the_failed_message_again(tmp_path: Path) -> None:
    async def main() -> None:
        model = ScriptedModel([CredentialError("bad key"), "hello"])
        async with home(tmp_path, model) as (services, _):
            talk = Conversation(services, KEY)
            await talk.send(said("hi"))
            await talk.send(said("/retry"))
            assert replies(services)[-1] == "hello"
            assert kinds(services) == ["prompt", "user", "assistant"]

    asyncio.run(main())


def test_an_empty_answer_is_asked_for_again_then_nudged(tmp_path: Path) -> None:
    async def main() -> None:
        model = ScriptedModel(["", "", "ok"])
        async with home(tmp_path, model) as (services, _):
            await Conversation(services, KEY).send(said("hi"))
            assert replies(services) == ["ok"]
            assert model.requests[0].messages == model.requests[1].messages
            assert "empty" in str(model.requests[2].messages)

    asyncio.run(main())


def test_the_step_limit_ends_with_an_answer_without_tools(tmp_path: Path) -> None:
    async def main() -> None:
        ledger = Ledger(tmp_path)
        steps = [Answer(calls=(call("look", {"word": str(n)}),)) for n in range(3)]
        model = ScriptedModel([*steps, "what I have so far"])
        async with home(tmp_path, model, tools=ledger.tools(), limits=Limits(steps=3)) as (services, _):
            await Conversation(services, KEY).send(said("go"))
            assert replies(services) == ["what I have so far"]
            assert model.requests[-1].tool_choice == "none"
            assert model.requests[-1].tools == model.requests[0].tools

    asyncio.run(main())


def test_the_same_event_is_answered_once(tmp_path: Path) -> None:
    async def main() -> None:
        model = ScriptedModel(["hello"])
        async with home(tmp_path, model) as (services, _):
            talk = Conversation(services, KEY)
            await talk.send(said("hi", event="m1"))
            await talk.send(said("hi", event="m1"))
            assert replies(services) == ["hello"]

    asyncio.run(main())


def test_new_begins_another_session_under_the_same_key(tmp_path: Path) -> None:
    async def main() -> None:
        model = ScriptedModel(["one", "two"])
        async with home(tmp_path, model) as (services, _):
            talk = Conversation(services, KEY)
            await talk.send(said("first"))
            await talk.send(said("/new"))
            await talk.send(said("second"))
            assert len(model.requests[1].messages) == 1
            rows = services.store.read(lambda c: sessions.recent(c))
            assert [row.ended is None for row in rows].count(True) == 1
            old = next(row for row in rows if row.ended)
            assert len(services.store.read(lambda c: entries.load(c, old.id))) == 3

    asyncio.run(main())


def test_stop_keeps_what_was_shown_and_the_next_message_works(tmp_path: Path) -> None:
    async def main() -> None:
        model = ScriptedModel([Answer(text="a long st", hang=True), "fine"])
        async with home(tmp_path, model) as (services, trace):
            talk = Conversation(services, KEY)
            running = asyncio.create_task(talk.send(said("tell me")))
            while "text" not in trace.text:
                await asyncio.sleep(0.01)
            await talk.send(said("/stop"))
            await running
            await talk.send(said("go on"))
            assert replies(services)[-1] == "fine"
            assert "a long st" in str(model.requests[1].messages)

    asyncio.run(main())


def test_a_message_in_the_middle_of_a_turn_steers_it(tmp_path: Path) -> None:
    async def main() -> None:
        ledger = Ledger(tmp_path)
        model = ScriptedModel([Answer(calls=(call("look", {"word": "x"}),), delay=0.1), "both"])
        async with home(tmp_path, model, tools=ledger.tools()) as (services, trace):
            talk = Conversation(services, KEY)
            running = asyncio.create_task(talk.send(said("first")))
            while "turn" not in trace.text:
                await asyncio.sleep(0.01)
            await Conversation(services, KEY).send(said("and this"))
            await running
            assert "and this" in str(model.requests[1].messages)
            assert replies(services) == ["both"]

    asyncio.run(main())


def test_a_message_at_the_instant_a_turn_ends_is_answered(tmp_path: Path) -> None:
    async def main() -> None:
        model = ScriptedModel([Answer(text="one", delay=0.1), "two"])
        async with home(tmp_path, model) as (services, trace):
            talk = Conversation(services, KEY)
            running = asyncio.create_task(talk.send(said("first")))
            while "turn" not in trace.text:
                await asyncio.sleep(0.01)
            await talk.send(said("second"))
            await running
            assert replies(services) == ["one", "two"]

    asyncio.run(main())


def test_commands_that_only_read_answer_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with home(tmp_path, ScriptedModel(["one"])) as (services, _):
            talk = Conversation(services, KEY)
            await talk.send(said("hi"))
            for command in ("/help", "/status", "/usage", "/context", "/nothing"):
                await talk.send(said(command))
            _, helped, status, used, context, unknown = replies(services)
            assert all(f"/{name}" in helped for name in ("help", "status", "new", "stop", "context", "model", "retry"))
            assert "scripted/scripted-1" in status
            assert "this conversation: " in used
            assert "total" in context
            assert "There is no command /nothing" in unknown

    asyncio.run(main())


def test_think_holds_for_this_conversation(tmp_path: Path) -> None:
    async def main() -> None:
        model = ScriptedModel(["one", "two", "three"])
        async with home(tmp_path, model) as (services, _):
            talk = Conversation(services, KEY)
            await talk.send(said("/think high"))
            await talk.send(said("first"))
            await talk.send(said("/think a lot"))
            await talk.send(said("/new"))
            await talk.send(said("second"))
            assert [request.sampling.thinking for request in model.requests] == ["high", None]
            assert any("There is no level a lot" in reply for reply in replies(services))

    asyncio.run(main())
