"""Helpers of `limpet agent` and `limpet chat`: worked on by the process itself, heard of before it ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

from limpet.testing.fakes import FakeOpenAI, Reply
from limpet.testing.fakes.script import Call, Seen
from tests.cli.program import Ended, at, limpet
from tests.cli.test_talking import started, typing


def script(
    *tasks: str, delay: float = 0.0, helper: Reply | None = None, heard: Reply | None = None
) -> Callable[[Seen], Reply]:
    """A main agent that has helpers for `tasks` and then tells what it has heard of them."""
    calls = tuple(Call("call_tool", json.dumps({"name": "spawn", "arguments": {"task": task}})) for task in tasks)

    def answer(seen: Seen) -> Reply:
        text = seen.raw.decode()
        if "You are a helper" in text:
            return helper or Reply(text=("the sea is blue",), delay=delay)
        if "half typed" in text:
            return Reply(text=("read it all",))
        if "helper_result" in text:
            return heard or Reply(text=(f"heard of {text.count('<helper_result>')}",))
        return Reply(text=("on it",)) if "has it" in text else Reply(calls=calls)

    return answer


def ask(home: Path, answer: Callable[[Seen], Reply]) -> Ended:
    async def main() -> Ended:
        async with FakeOpenAI(answer) as server:
            return await limpet(home, "agent", "-m", "what colour is the sea?", **at(server))

    return asyncio.run(main())


def test_one_turn_waits_for_its_helpers_and_says_what_came_of_them(tmp_path: Path) -> None:
    ended = ask(tmp_path, script("look", "look again"))
    assert ended.code == 0
    first, *others = ended.out.splitlines()
    assert first == "on it"
    assert others in (["heard of 2"], ["heard of 1", "heard of 2"])


def test_a_helper_that_fails_is_no_failure_of_the_turn(tmp_path: Path) -> None:
    refused = Reply(status=400, body={"error": {"message": "no"}})
    ended = ask(tmp_path, script("look", helper=refused))
    assert (ended.code, ended.out) == (0, "on it\nheard of 1\n")


def test_a_result_to_which_nothing_can_be_answered_is_shown_and_the_exit_code_says_so(tmp_path: Path) -> None:
    refused = Reply(status=400, body={"error": {"message": "no"}})
    ended = ask(tmp_path, script("look", heard=refused))
    assert ended.code == 3
    assert "the sea is blue" in ended.out


def test_what_was_half_typed_when_a_result_came_stands_at_the_next_prompt(tmp_path: Path) -> None:
    async def main() -> str:
        helped = script("look", delay=1.0)
        async with FakeOpenAI(helped) as server, typing(tmp_path, server, "chat") as person:
            await person.until("> ")
            person.type("do it\r")
            await person.until("on it")
            await person.until("> ")
            await person.prompted()
            person.type("half ty")
            await person.until("heard of 1")
            await person.until("> ")
            await person.prompted()
            person.type("ped\r")
            await person.until("read it all")
            await person.until("> ")
            person.type("exit\r")
        return server.requests[-1].raw.decode()

    assert "half typed" in asyncio.run(main())


def test_status_and_sessions_show_a_helper_beneath_its_conversation(tmp_path: Path) -> None:
    async def main() -> tuple[Ended, Ended, Ended]:
        answer = script("look at the sea", delay=30.0)
        async with FakeOpenAI(answer) as server, started(tmp_path, server, "agent", "-m", "look"):
            async with asyncio.timeout(30):
                while not any(b"You are a helper" in seen.raw for seen in server.requests):
                    await asyncio.sleep(0.05)
            return (
                await limpet(tmp_path, "status"),
                await limpet(tmp_path, "status", "--json"),
                await limpet(tmp_path, "sessions", "list", "--json"),
            )

    shown, as_json, listed = asyncio.run(main())
    (helper,) = json.loads(as_json.out)["helpers"]
    assert " working, " in helper
    assert helper.endswith(": look at the sea")
    assert f"{helper.split()[0]} working, " in shown.out
    assert ": look at the sea" in shown.out
    keys = [json.loads(line)["key"] for line in listed.out.splitlines()]
    assert keys[0] == "agent:main:main"
    assert keys[1].startswith("agent:main:main:subagent:h")
