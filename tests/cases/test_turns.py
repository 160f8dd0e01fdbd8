"""Cases of providers and sessions, seen from a whole turn: what runs, what is replayed, what people are told."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from limpet.session.project import project
from limpet.testing.fakes.anthropic import FakeAnthropic
from limpet.testing.fakes.openai import FakeOpenAI
from limpet.testing.fakes.script import Call, Reply, Rules, Seen
from limpet.testing.fakes.server import FakeServer
from limpet.types.content import Text
from limpet.types.message import UserMessage
from tests.cases.stage import QUICK, stage
from tests.session.logs import Builder


def messages(server: FakeServer, request: int = -1) -> list[dict[str, object]]:
    body = server.requests[request].body
    assert body is not None
    found = body["messages"]
    assert isinstance(found, list)
    return found


def calls_of(server: FakeServer) -> list[dict[str, object]]:
    """The calls in the newest request, as they are replayed."""
    return [call["function"] for message in messages(server) for call in message.get("tool_calls") or []]  # pyright: ignore


@pytest.mark.parametrize("arguments", ["", "null", '"null"', "  "])
def test_c01_a_tool_without_parameters_runs_once_with_an_empty_object(tmp_path: Path, arguments: str) -> None:
    async def main() -> None:
        async with FakeOpenAI([Reply(calls=(Call("list_dir", arguments),)), Reply(text=("ok",))]) as server:
            async with stage(tmp_path, server) as one:
                await one.say("status")
                assert one.replies == ["ok"]
                assert len(one.results()) == 1
            assert [call["arguments"] for call in calls_of(server)] == ["{}"]

    asyncio.run(main())


@pytest.mark.parametrize("arguments", ["[]", "12"])
def test_c01f_arguments_that_are_no_object_are_not_run(tmp_path: Path, arguments: str) -> None:
    async def main() -> None:
        async with FakeOpenAI([Reply(calls=(Call("list_dir", arguments),)), Reply(text=("ok",))]) as server:
            async with stage(tmp_path, server) as one:
                await one.say("status")
                assert "arguments must be an object" in one.results()[0]
                assert one.replies == ["ok"]

    asyncio.run(main())


def test_c02_arguments_as_an_object_run_and_are_replayed_as_text(tmp_path: Path) -> None:
    chunk = {
        "choices": [
            {
                "index": 0,
                "delta": {
                    "role": "assistant",
                    "tool_calls": [
                        {"index": 0, "id": "c1", "function": {"name": "exec", "arguments": {"command": "echo ok"}}}
                    ],
                },
                "finish_reason": None,
            }
        ]
    }

    async def main() -> None:
        async with FakeOpenAI([Reply(chunks=(chunk,), stop="tool_calls"), Reply(text=("done",))]) as server:
            async with stage(tmp_path, server) as one:
                await one.say("go")
                assert one.results()[0].startswith("ok")
            assert [json.loads(str(call["arguments"])) for call in calls_of(server)] == [{"command": "echo ok"}]

    asyncio.run(main())


def test_c03a_three_calls_under_one_index_run_in_order(tmp_path: Path) -> None:
    def piece(id: str, path: str) -> dict[str, object]:
        function = {"name": "write_file", "arguments": json.dumps({"path": path, "content": id})}
        delta = {"tool_calls": [{"index": 0, "id": id, "type": "function", "function": function}]}
        return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}

    chunks = (piece("x1", "a.txt"), piece("x2", "b.txt"), piece("x3", "c.txt"))

    async def main() -> None:
        async with FakeOpenAI([Reply(chunks=chunks, stop="tool_calls"), Reply(text=("done",))]) as server:
            async with stage(tmp_path, server) as one:
                await one.say("go")
                assert [(one.workspace / f"{name}.txt").read_text() for name in "abc"] == ["x1", "x2", "x3"]
            results = [message["tool_call_id"] for message in messages(server) if message["role"] == "tool"]
            assert results == ["x1", "x2", "x3"]

    asyncio.run(main())


def test_c03b_two_objects_in_one_call_run_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        script = [Reply(calls=(Call("write_file", '{"path":"p1"}{"path":"p2"}'),)), Reply(text=("sorry",))]
        async with FakeOpenAI(script) as server, stage(tmp_path, server) as one:
            await one.say("go")
            assert list(one.workspace.iterdir()) == []
            assert len(one.results()) == 1
            assert one.replies == ["sorry"]

    asyncio.run(main())


@pytest.mark.parametrize("stop", ["length", "tool_calls"])
def test_c04_a_call_that_was_cut_off_writes_nothing(tmp_path: Path, stop: str) -> None:
    cut = Reply(calls=(Call("write_file", '{"path":"a.txt","content":"line1\\nli'),), stop=stop)

    async def main() -> None:
        async with FakeOpenAI([cut, Reply(text=("I will do it in parts",))]) as server:
            async with stage(tmp_path, server) as one:
                (one.workspace / "a.txt").write_text("KEEP")
                await one.say("write")
                assert (one.workspace / "a.txt").read_text() == "KEEP"
                assert "cut off" in one.results()[0]
            for call in calls_of(server):
                assert isinstance(json.loads(str(call["arguments"])), dict)

    asyncio.run(main())


def test_c04_after_two_cuts_it_is_told_to_write_in_parts_and_not_asked_a_fourth_time(tmp_path: Path) -> None:
    def script(seen: Seen) -> Reply:
        assert seen.body is not None
        if seen.body.get("tool_choice") == "none":
            return Reply(text=("I could not write it.",))
        return Reply(calls=(Call("write_file", '{"path":"a.txt","content":"li'),), stop="length")

    async def main() -> None:
        async with FakeOpenAI(script) as server:
            async with stage(tmp_path, server) as one:
                await one.say("write")
                assert one.replies == ["I could not write it."]
            assert "in parts" in json.dumps(messages(server, 2))
            assert len(server.requests) == 4

    asyncio.run(main())


def test_c04c_a_missing_argument_is_named(tmp_path: Path) -> None:
    async def main() -> None:
        script = [Reply(calls=(Call("write_file", '{"path":"a.txt"}'),)), Reply(text=("ok",))]
        async with FakeOpenAI(script) as server, stage(tmp_path, server) as one:
            await one.say("write")
            assert "content" in one.results()[0]
            assert not (one.workspace / "a.txt").exists()

    asyncio.run(main())


def test_c06_deepseek_gets_its_own_reasoning_back_after_a_restart_and_an_empty_one_for_foreign_turns(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        call = Call("list_dir", "{}")
        async with FakeOpenAI([Reply(calls=(call,)), Reply(text=("foreign",))]) as other:
            async with stage(tmp_path, other) as one:
                await one.say("before")
        script = [Reply(thinking="plan", calls=(call,)), Reply(text=("one",)), Reply(text=("two",))]
        async with FakeOpenAI(script, rules=Rules(deepseek=True)) as server:
            async with stage(tmp_path, server, "deepseek/deepseek-chat") as one:
                await one.say("first")
            async with stage(tmp_path, server, "deepseek/deepseek-chat") as one:
                await one.say("second")
                assert one.replies == ["foreign", "one", "two"]
            assert server.refusals == []
            echoed = [message["reasoning_content"] for message in messages(server) if message.get("tool_calls")]
            assert echoed == ["", "plan"]

    asyncio.run(main())


MARKUP = (
    '<minimax:tool_call><invoke name="exec"><parameter name="command">echo a &amp;&amp; echo b</parameter>'
    "</invoke></minimax:tool_call>"
)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_c08a_a_call_written_as_text_runs_and_is_never_shown(tmp_path: Path, size: int) -> None:
    pieces = tuple(MARKUP[at : at + size] for at in range(0, len(MARKUP), size))

    async def main() -> None:
        async with FakeOpenAI([Reply(text=pieces), Reply(text=("done",))]) as server:
            async with stage(tmp_path, server, "custom/minimax-m2") as one:
                await one.say("go")
                assert one.results()[0].startswith("a\nb")
                assert "minimax" not in one.trace.text.replace("custom/minimax", "")
                assert one.replies == ["done"]

    asyncio.run(main())


def test_c08b_a_bare_object_of_a_local_model_runs(tmp_path: Path) -> None:
    async def main() -> None:
        script = [Reply(text=('{"name":"exec","arguments":{"command":"echo hi"}}',)), Reply(text=("done",))]
        async with FakeOpenAI(script) as server, stage(tmp_path, server, "ollama/qwen3:8b") as one:
            await one.say("go")
            assert one.results()[0].startswith("hi")

    asyncio.run(main())


def test_c08b_an_unknown_name_is_text(tmp_path: Path) -> None:
    text = '{"name":"launch","arguments":{"when":"now"}}'

    async def main() -> None:
        async with FakeOpenAI([Reply(text=(text,))]) as server, stage(tmp_path, server, "ollama/qwen3:8b") as one:
            await one.say("go")
            assert one.replies == [text]
            assert one.results() == []

    asyncio.run(main())


def test_c08c_a_call_in_a_fence_is_an_explanation(tmp_path: Path) -> None:
    text = f"Write it like this:\n```\n{MARKUP}\n```\nand it runs."

    async def main() -> None:
        async with FakeOpenAI([Reply(text=(text,))]) as server, stage(tmp_path, server, "custom/minimax-m2") as one:
            await one.say("how?")
            assert one.replies == [text]
            assert one.results() == []

    asyncio.run(main())


@pytest.mark.parametrize(
    ("text", "shown"),
    [("<think>long plan<final>Answer 42</final>", "Answer 42"), ("<think>x</think>Hello", "Hello")],
)
def test_c08de_thinking_written_as_text_is_never_shown(tmp_path: Path, text: str, shown: str) -> None:
    async def main() -> None:
        async with FakeOpenAI([Reply(text=tuple(text))]) as server:
            async with stage(tmp_path, server, "ollama/qwen3:8b") as one:
                await one.say("?")
                assert one.replies == [shown]
                said = [line for line in one.trace.text.splitlines() if line.startswith("text")]
                assert "plan" not in "".join(said)
                assert "think" not in "".join(said)

    asyncio.run(main())


def test_c10_thinking_goes_back_unchanged_to_its_own_model_only(tmp_path: Path) -> None:
    async def main() -> None:
        script = [Reply(calls=(Call("list_dir", "{}"),), signature="S1"), *(Reply(text=(word,)) for word in "abcd")]
        async with FakeAnthropic(script) as server:
            for reference, word in (("claude-a", "1"), ("claude-a", "2"), ("claude-b", "3"), ("claude-a", "4")):
                async with stage(tmp_path, server, f"anthropic/{reference}") as one:
                    await one.say(word)
                    assert len(one.replies) == int(word)
            assert server.refusals == []
            kept = [json.dumps(messages(server, request)) for request in range(5)]
            assert ["S1" in text for text in kept] == [False, True, True, False, True]
            assert "tool_use" in kept[3]

    asyncio.run(main())


@pytest.mark.parametrize("broken", [{"error": {"code": 502, "message": "upstream"}}, {"choices": None}])
def test_c14ab_a_200_that_is_no_answer_is_asked_again(tmp_path: Path, broken: object) -> None:
    async def main() -> None:
        async with FakeOpenAI([Reply(body=broken), Reply(text=("fine",))]) as server:
            async with stage(tmp_path, server) as one:
                await one.say("hi")
                assert one.replies == ["fine"]

    asyncio.run(main())


def test_c14c_text_before_an_error_is_not_the_answer(tmp_path: Path) -> None:
    broken = Reply(
        raw=(
            'data: {"choices":[{"index":0,"delta":{"content":"half "}}]}\n\n',
            'data: {"choices":[{"index":0,"delta":{"content":"of it"}}]}\n\n',
            'data: {"error":{"message":"upstream died","code":502}}\n\n',
        )
    )

    async def main() -> None:
        async with FakeOpenAI([broken, Reply(text=("whole",))]) as server, stage(tmp_path, server) as one:
            await one.say("hi")
            assert one.replies == ["whole"]
            assert "reset" in one.trace.text

    asyncio.run(main())


def test_c14d_an_empty_answer_is_repeated_then_nudged(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI([Reply(stop="stop"), Reply(stop="stop"), Reply(text=("ok",))]) as server:
            async with stage(tmp_path, server) as one:
                await one.say("hi")
                assert one.replies == ["ok"]
            assert messages(server, 0) == messages(server, 1)
            assert "(empty)" not in json.dumps(messages(server, 2))

    asyncio.run(main())


def test_c14e_no_credit_is_said_in_the_providers_words(tmp_path: Path) -> None:
    async def main() -> None:
        refusal = Reply(status=402, body={"error": {"message": "no credits"}})
        async with FakeOpenAI([refusal]) as server, stage(tmp_path, server) as one:
            await one.say("hi")
            assert "no credits" in one.replies[0]

    asyncio.run(main())


def test_c14f_a_call_without_text_is_normal(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI([Reply(calls=(Call("list_dir"),)), Reply(text=("ok",))]) as server:
            async with stage(tmp_path, server) as one:
                await one.say("hi")
                assert one.replies == ["ok"]
            assert [message["role"] for message in messages(server)] == ["system", "user", "assistant", "tool"]

    asyncio.run(main())


@pytest.mark.parametrize("stall", [Reply(stall_after=0), Reply(text=("one chunk",), stall_after=2, pings=0.05)])
def test_c15_a_stalled_answer_is_given_up_and_the_session_works(tmp_path: Path, stall: Reply) -> None:
    async def main() -> None:
        async with FakeOpenAI([stall, stall, Reply(text=("fine",))]) as server:
            async with stage(tmp_path, server, deadlines=QUICK) as one:
                await one.say("hi")
                assert len(server.requests) == 2
                await one.say("again")
                assert one.replies[-1] == "fine"

    asyncio.run(main())


def test_c15_stop_during_a_stall(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI([Reply(text=("one chunk",), stall_after=2), Reply(text=("fine",))]) as server:
            async with stage(tmp_path, server) as one:
                running = asyncio.create_task(one.say("hi"))
                while "text" not in one.trace.text:
                    await asyncio.sleep(0.01)
                await one.say("/stop")
                await running
                await one.say("again")
                assert one.replies[-1] == "fine"

    asyncio.run(main())


def test_c17_a_window_of_the_log_keeps_the_user_and_no_orphans() -> None:
    log = Builder()
    log.user("u1")
    first = log.assistant("", ("a",))
    log.result(first, 0)
    log.user("u2")
    log.result("gone", 0)
    assert project(log.entries[-3:]) == (UserMessage((Text("u2"),)),)


def test_c19d_half_a_call_never_goes_back_on_the_wire(tmp_path: Path) -> None:
    arguments = '{"path":"a.txt","content":"raw\nnewline and more of it"}'
    cut = Reply(calls=(Call("write_file", arguments, pieces=8),), cut_after=8)

    async def main() -> None:
        async with FakeAnthropic([cut, cut, Reply(text=("fine",))]) as server:
            async with stage(tmp_path, server, "anthropic/claude-a") as one:
                await one.say("write")
                await one.say("go on")
                assert one.replies[-1] == "fine"
                assert one.results() == []
            assert server.refusals == []
            assert "tool_use" not in json.dumps(messages(server))

    asyncio.run(main())


def test_c21d_words_of_the_user_are_no_overflow(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI([Reply(text=("I see",))]) as server, stage(tmp_path, server) as one:
            await one.say("Context overflow: prompt too large")
            assert one.replies == ["I see"]
            assert len(server.requests) == 1

    asyncio.run(main())


def test_c23a_messages_at_once_are_all_answered_in_order_and_others_do_not_wait(tmp_path: Path) -> None:
    from limpet.assistant.conversation import Conversation
    from tests.assistant.room import said

    def script(seen: Seen) -> Reply:
        return Reply(text=("ok",), delay=4 if "u1" in seen.raw.decode() and "u2" not in seen.raw.decode() else 0)

    async def main() -> None:
        async with FakeOpenAI(script) as server, stage(tmp_path, server) as one:
            other = Conversation(one.services, "agent:main:cli:other")
            texts = ["u1", "u2", "u3"]
            async with asyncio.TaskGroup() as group:
                waiting = [group.create_task(one.say(text)) for text in texts]
                await other.send(said("elsewhere"))
                assert not all(task.done() for task in waiting)
            last = [seen.raw.decode() for seen in server.requests if "u3" in seen.raw.decode()][-1]
            assert [last.count(text) for text in texts] == [1, 1, 1]
            assert last.index("u1") < last.index("u2") < last.index("u3")
            states = one.services.store.read(lambda c: c.execute("SELECT DISTINCT state FROM turns").fetchall())
            assert states == [("done",)]

    asyncio.run(main())
