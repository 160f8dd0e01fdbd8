"""`limpet chat` on a real pseudo-terminal, as a person sees it."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from limpet.testing.fakes.openai import FakeOpenAI
from limpet.testing.fakes.script import Call, Reply, Seen
from tests.cli.program import at, limpet
from tests.cli.screen import DOWN, ENTER, ESCAPE, UP, Person, sitting
from tests.crash.processes import rows

ANSWER = "## Head\n\nA List<String> of *two*:\n\n- one\n- two\n\n```python\ndef f(): return 1\n```\n\nAll said."
WRITES = Call("write_file", json.dumps({"path": "a.txt", "content": "one\ntwo\n"}))
EXEC = Call("exec", json.dumps({"command": "echo ran >> ran.txt"}))


def newest(seen: Seen) -> str:
    return seen.raw.decode().rpartition('"role":"user"')[2]


def script(seen: Seen) -> Reply:
    """Writes a file, runs a command, tells at length or says something, as it is asked."""
    asked = newest(seen)
    if '"role":"tool"' in asked:
        return Reply(text=("after the tool",))
    if "write it" in asked:
        return Reply(calls=(WRITES,))
    if "run it" in asked:
        return Reply(calls=(EXEC,))
    if "at length" in asked:
        return Reply(text=("```\n", *(f"line {number}\n" for number in range(120)), "```\n\nthe end"), delay=0.005)
    return Reply(text=(ANSWER[:20], ANSWER[20:60], ANSWER[60:]), delay=0.15)


async def answered(person: Person, text: str = "hello") -> None:
    before = person.window.text.count("All said.")
    await person.say(text)
    await person.until(lambda shown: shown.count("All said.") == before + 1)


def test_an_answer_is_markdown_once_it_is_there(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI(script) as server, sitting(tmp_path, server) as person:
            await answered(person)
            await person.prompted()
            shown = person.window.text
        assert "\nHead\n" in shown
        assert "A List<String> of two:\n\n • one\n • two\n\n" in shown
        assert "\n  def f(): return 1\n" in shown
        assert shown.count("def f()") == 1
        assert "```" not in shown
        assert "\x1b[" in person.raw

    asyncio.run(main())


@pytest.mark.parametrize("size", [(80, 24), (40, 10)], ids=["80x24", "narrow"])
def test_what_changes_is_never_higher_than_the_window(tmp_path: Path, size: tuple[int, int]) -> None:
    async def main() -> None:
        columns, height = size
        async with FakeOpenAI(script) as server, sitting(tmp_path, server, columns=columns, rows=height) as person:
            await person.say("at length")
            await person.until("the end")
            await person.prompted()
            shown = person.window.text
        assert person.window.highest < height
        assert re.findall(r"line (\d+)\n", shown) == [str(number) for number in range(120)]
        assert "Ctrl-C stops\n" not in shown.partition("> at length")[2]

    asyncio.run(main())


def test_the_window_may_change_its_size_while_an_answer_comes(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI(script) as server, sitting(tmp_path, server, XTERM_VERSION="1") as person:
            await person.say("at length")
            await person.until("line 20")
            person.resize(50, 12)
            await person.until("the end")
            await person.prompted()
            assert person.window.text.count("\n  line 119\n") == 1

    asyncio.run(main())


def test_without_colour_there_is_none(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI(script) as server, sitting(tmp_path, server, NO_COLOR="1") as person:
            await answered(person)
        assert not re.search(r"\x1b\[(?:[\d;]*;)?[349]\d(?:;\d+)*m", person.raw)

    asyncio.run(main())


def test_a_file_that_is_written_shows_its_diff(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI(script) as server, sitting(tmp_path, server) as person:
            await person.say("write it")
            await person.until("after the tool")
            shown = person.window.text
        assert "· write_file path=a.txt, content=one two" in shown
        assert "  +one\n  +two\n" in shown
        assert "\x1b[32m  +one" in person.raw

    asyncio.run(main())


def test_context_and_cost_stand_below_the_prompt(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI(script) as server, sitting(tmp_path, server) as person:
            await answered(person)
            await person.until("main · openai/gpt-5 · context ")
            await person.until(lambda shown: "$" in shown)

    asyncio.run(main())


@pytest.mark.parametrize(("key", "ran"), [("y", True), ("n", False), (ENTER, False)])
def test_one_key_approves_exactly_this_plan(tmp_path: Path, key: str, ran: bool) -> None:
    (tmp_path / "config.toml").write_text('[tools.sandbox]\nmode = "ask"\n')

    async def main() -> None:
        async with FakeOpenAI(script) as server, sitting(tmp_path, server) as person:
            await person.say("run it")
            await person.until("Allow it?")
            assert 'command="echo ran >> ran.txt"' in person.window.text
            person.type(key)
            await person.until("after the tool")

    asyncio.run(main())
    assert (tmp_path / "workspace/ran.txt").exists() == ran


def test_ctrl_c_at_an_approval_stops_the_turn(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[tools.sandbox]\nmode = "ask"\n')

    async def main() -> None:
        async with FakeOpenAI(script) as server, sitting(tmp_path, server) as person:
            await person.say("run it")
            await person.until("Allow it?")
            person.type("\x03")
            await person.until("Stopped.")

    asyncio.run(main())
    assert rows(tmp_path, "SELECT state FROM turns") == [("cancelled",)]


def test_an_approval_of_a_file_shows_what_would_change(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[[policy.rules]]\ntool = "write_file"\ndecision = "ask"\n')
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace/a.txt").write_text("one\nthree\n")

    async def main() -> None:
        async with FakeOpenAI(script) as server, sitting(tmp_path, server) as person:
            await person.say("write it")
            await person.until("Allow it?")
            assert "   one\n  -three\n  +two\n" in person.window.text
            person.type("y")
            await person.until("after the tool")

    asyncio.run(main())
    assert (tmp_path / "workspace/a.txt").read_text() == "one\ntwo\n"


def test_esc_esc_goes_back_with_the_files(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI(script) as server, sitting(tmp_path, server) as person:
            await answered(person)
            await person.say("write it")
            await person.until("after the tool")
            await person.prompted()
            person.type(ESCAPE + ESCAPE)
            await person.until("Back to before which message?")
            person.type(ENTER)
            await person.until("What goes back?")
            person.type(DOWN + ENTER)
            await person.until("Do exactly this?")
            person.type("y")
            await person.until("after “hello” now")
            await person.until("\n> write it")
            person.type("\x15")

    asyncio.run(main())
    assert not (tmp_path / "workspace/a.txt").exists()


def test_going_back_in_the_conversation_only_leaves_the_files(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI(script) as server, sitting(tmp_path, server) as person:
            await person.say("write it")
            await person.until("after the tool")
            await person.say("/rewind")
            await person.until("Back to before which message?")
            person.type(ENTER)
            await person.until("What goes back?")
            person.type(ENTER)
            await person.until("at its beginning now")
            await person.until("\n> write it")
            person.type("\x15")

    asyncio.run(main())
    assert (tmp_path / "workspace/a.txt").exists()


def test_conversations_are_changed_inside_the_chat(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI(script) as server:
            await limpet(tmp_path, "agent", "-m", "quick", "--session", "boats", **at(server))
            async with sitting(tmp_path, server) as person:
                await answered(person)
                await person.say("/sessions")
                await person.until("Conversations")
                assert "quick" in person.window.text
                person.type(DOWN + ENTER)
                await person.until("This is the conversation boats.")
                await answered(person, "in the boats")
                await person.say("/sessions new-one")
                await person.until("This is the conversation new-one.")

    asyncio.run(main())
    said = "SELECT key FROM sessions JOIN entries ON session = sessions.id WHERE kind = 'user' ORDER BY entries.at"
    assert [key for (key,) in rows(tmp_path, said)] == [
        "agent:main:cli:boats",
        "agent:main:main",
        "agent:main:cli:boats",
    ]


def test_a_fork_can_be_gone_on_in(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI(script) as server, sitting(tmp_path, server) as person:
            await answered(person)
            await person.say("/fork other")
            await person.until("Where to go on?")
            person.type(DOWN + ENTER)
            await person.until("This is the conversation other.")

    asyncio.run(main())


def test_esc_leaves_a_choice_and_arrows_go_round(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI(script) as server, sitting(tmp_path, server) as person:
            await answered(person)
            await person.say("/sessions")
            await person.until("Conversations")
            person.type(UP)
            person.type(ESCAPE)
            await answered(person, "still here")

    asyncio.run(main())
