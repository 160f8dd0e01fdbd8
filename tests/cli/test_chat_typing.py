"""What is typed at the prompt of `limpet chat`: lines, pasted blocks, completions, commands of one's own, files."""

from __future__ import annotations

import asyncio
from pathlib import Path

from limpet.testing.fakes.openai import FakeOpenAI
from limpet.testing.fakes.script import Call, Reply, Seen
from tests.cli.screen import Person, sitting

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000a49444154789c6360000000020001e221bc330000000049454e44ae426082"
)


def script(seen: Seen) -> Reply:
    asked = seen.raw.decode().rpartition('"role":"user"')[2]
    if '"role":"tool"' in asked:
        return Reply(text=("All said.",))
    if "look around" in asked:
        return Reply(calls=(Call("list_dir", "{}"),))
    return Reply(text=("All said.",), delay=0.3 if "slow" in asked else 0)


async def said(person: Person, server: FakeOpenAI, count: int = 1) -> str:
    """What the model was told last, once it has answered so often."""
    await person.until(lambda shown: shown.count("All said.") == count)
    return server.requests[-1].raw.decode().rpartition('"role":"user"')[2]


def test_lines_by_backslash_and_alt_enter_are_one_message(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI(script) as server, sitting(tmp_path, server) as person:
            await person.prompted()
            person.type("one\\\r")
            person.type("two\x1b\r")
            person.type("three\r")
            assert "one\\ntwo\\nthree" in await said(person, server)

    asyncio.run(main())


def test_a_pasted_block_is_one_message(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI(script) as server, sitting(tmp_path, server) as person:
            await person.prompted()
            person.paste("def f():\n    return 1\n\nend")
            person.type("\r")
            assert "def f():\\n    return 1\\n\\nend" in await said(person, server)

    asyncio.run(main())


def test_the_history_is_searched(tmp_path: Path) -> None:
    (tmp_path / "history").write_text("\n# 2026-01-01\n+the tide at noon\n\n# 2026-01-02\n+something else\n")

    async def main() -> None:
        async with FakeOpenAI(script) as server, sitting(tmp_path, server) as person:
            await person.prompted()
            person.type("\x12tide")
            await person.until("the tide at noon")
            person.type("\r\r")
            assert "the tide at noon" in await said(person, server)

    asyncio.run(main())


def test_commands_are_completed_with_their_help(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI(script) as server, sitting(tmp_path, server) as person:
            await person.prompted()
            person.type("/verb")
            await person.until("show results of tools")
            person.type("\t\r")
            await person.until("are shown whole from now on")

    asyncio.run(main())


def test_files_are_completed_by_a_few_letters(tmp_path: Path) -> None:
    here = tmp_path / "here"
    (here / "deep").mkdir(parents=True)
    (here / "deep/barnacle.txt").write_text("I cling")
    (here / ".gitignore").write_text("*.log\n")
    (here / "barnacle.log").write_text("noise")

    async def main() -> None:
        async with FakeOpenAI(script) as server, sitting(tmp_path, server, cwd=here) as person:
            await person.prompted()
            person.type("read @brnc")
            await person.until("deep/barnacle.txt")
            assert "barnacle.log" not in person.window.text
            person.type("\t")
            await person.until("read @deep/barnacle.txt")
            person.type("\r")
            person.type("\r")
            assert "I cling" in await said(person, server)

    asyncio.run(main())


def test_a_picture_goes_by_its_pasted_path(tmp_path: Path) -> None:
    (tmp_path / "my pic.png").write_bytes(PNG)

    async def main() -> None:
        async with FakeOpenAI(script) as server, sitting(tmp_path, server) as person:
            await person.prompted()
            person.paste(f"what is {tmp_path}/my\\ pic.png")
            person.type("\r")
            assert "data:image/png;base64," in await said(person, server)

    asyncio.run(main())


def test_a_command_of_ones_own_is_not_told(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI(script) as server, sitting(tmp_path, server) as person:
            await person.say("!echo limpets $((40 + 2)); exit 3")
            await person.until("limpets 42\n[exit code 3]")
            await person.say("hello")
            assert "limpets 42" not in await said(person, server)

    asyncio.run(main())


def test_the_output_of_two_marks_goes_with_the_next_message_only(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI(script) as server, sitting(tmp_path, server) as person:
            await person.say("!!echo limpets $((40 + 2))")
            await person.until("limpets 42\n[exit code 0; its output goes")
            await person.say("hello")
            assert "limpets 42" in await said(person, server)
            await person.say("again")
            assert "limpets 42" not in await said(person, server, 2)

    asyncio.run(main())


def test_ctrl_c_ends_a_command_of_ones_own_and_no_more(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI(script) as server, sitting(tmp_path, server) as person:
            await person.say("!echo begun; sleep 30")
            await person.until("\nbegun")
            person.type("\x03")
            await person.until("[exit code")
            await person.say("hello")
            await said(person, server)

    asyncio.run(main())


def test_results_are_folded_until_ctrl_o(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    for number in range(5):
        (tmp_path / f"workspace/shell-{number}.txt").write_text("x")

    async def main() -> None:
        async with FakeOpenAI(script) as server, sitting(tmp_path, server) as person:
            await person.say("look around")
            await said(person, server)
            assert "shell-3.txt" not in person.window.text
            assert "lines, ctrl-o shows them" in person.window.text
            await person.prompted()
            person.type("\x0f")
            await person.until("shell-3.txt")

    asyncio.run(main())


def test_ctrl_o_is_heard_while_a_turn_runs(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI(script) as server, sitting(tmp_path, server) as person:
            await person.say("slow")
            await person.until("Ctrl-C stops")
            person.type("\x0f")
            await person.until("are shown whole from now on")
            await said(person, server)

    asyncio.run(main())


def test_what_is_typed_meanwhile_stands_at_the_next_prompt(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI(script) as server, sitting(tmp_path, server) as person:
            await person.say("slow")
            await person.until("Ctrl-C stops")
            person.type("typed ahead")
            await said(person, server)
            await person.until("\n> typed ahead")
            person.type("\x15")

    asyncio.run(main())


def test_what_is_sent_meanwhile_is_said_next(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI(script) as server, sitting(tmp_path, server) as person:
            await person.say("slow")
            await person.until("Ctrl-C stops")
            person.type("sent ahead\r")
            assert "sent ahead" in await said(person, server, 2)

    asyncio.run(main())


def test_a_name_that_is_none_ends_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI(script) as server, sitting(tmp_path, server) as person:
            await person.say("/sessions not:a name")
            await person.until("is not a name for a session")
            await person.say("hello")
            await said(person, server)

    asyncio.run(main())


def test_on_a_dumb_terminal_all_is_lines(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI(script) as server, sitting(tmp_path, server, TERM="dumb") as person:
            await person.say("hello")
            await said(person, server)
            await person.say("/sessions")
            await person.until("/sessions NAME changes")
            await person.say("/rewind")
            await person.until("/rewind N goes back")
            await person.say("!echo $((40 + 2))")
            await person.until("42\n[exit code 0]")
        assert "\x1b[" not in person.raw.replace("\x1b[?", "")

    asyncio.run(main())
