"""Bad input, as people and scripts give it, to the real program: a sentence and an exit code, never a traceback."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from limpet.llm.embedded import find_embedded
from limpet.llm.local import find_local
from limpet.testing.fakes.openai import FakeOpenAI
from limpet.testing.fakes.script import Reply, Seen
from tests.cli.program import GUARD, Ended, ask, at, environment, run

OK = Reply(text=("fine",))


def last_words(seen: Seen) -> Reply:
    """A model that repeats what was said last."""
    assert seen.body is not None
    messages = seen.body["messages"]
    assert isinstance(messages, list)
    content = messages[-1]["content"]
    text = content if isinstance(content, str) else content[0]["text"]
    return Reply(text=(text.split("<runtime>")[0].strip(),))


def plain(ended: Ended) -> str:
    assert "Traceback" not in ended.err
    return ended.err


def test_no_key_and_no_model_names_three_ways(tmp_path: Path) -> None:
    if find_embedded() or asyncio.run(find_local()):
        pytest.skip("this machine has a model")
    ended = run(tmp_path, "agent", "-m", "hi", "--json")
    assert ended.code == 2
    assert all(f"  {number}. " in plain(ended) for number in (1, 2, 3))
    event = json.loads(ended.out)
    assert (event["event"], event["error"], event["code"]) == ("error", "NoModelError", 2)


def test_a_model_without_its_key(tmp_path: Path) -> None:
    ended = run(tmp_path, "agent", "-m", "hi", LIMPET_MODEL="openai/gpt-5")
    assert ended.code == 2
    assert "OPENAI_API_KEY" in plain(ended)


def test_a_wrong_key_gives_the_words_of_the_provider(tmp_path: Path) -> None:
    ended = ask(tmp_path, [OK], "agent", "-m", "hi", key="sk-of-somebody-else")
    assert ended.code == 3
    assert "Incorrect API key provided" in plain(ended)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_address_where_nobody_listens(tmp_path: Path, scheme: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"{scheme}://127.0.0.1:{free.getsockname()[1]}/v1"
        there = {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": address, "LIMPET_MODEL": "openai/gpt-5"}
        ended = run(tmp_path, "agent", "-m", "hi", **there)
    assert ended.code == 3
    assert address in plain(ended)


@pytest.mark.parametrize(
    ("reply", "word"),
    [
        (Reply(body="<html><body>log in</body></html>"), "HTML"),
        (Reply(body={"error": {"message": "boom", "code": "weird"}}), "boom"),
        (Reply(status=400, body={"error": {"message": "half \ud83d".encode("utf-8", "replace").decode()}}), "half"),
    ],
)
def test_answers_that_are_none(tmp_path: Path, reply: Reply, word: str) -> None:
    ended = ask(tmp_path, [reply] * 6, "agent", "-m", "hi")
    assert ended.code == 3
    assert word in plain(ended)


def test_a_message_of_five_megabytes_is_refused(tmp_path: Path) -> None:
    ended = ask(tmp_path, [OK], "agent", "-m", "sum it up", stdin=b"word " * 1_000_000)
    assert ended.code == 2
    assert "at most" in plain(ended)


def test_standard_input_that_is_no_text(tmp_path: Path) -> None:
    ended = ask(tmp_path, [OK], "agent", "-m", "hi", stdin=b"\x7fELF\0\xff")
    assert ended.code == 2
    assert "not text" in plain(ended)


def test_nothing_at_all(tmp_path: Path) -> None:
    for arguments in ((), ("-m", ""), ("-m", "  \n")):
        ended = ask(tmp_path, [OK], "agent", *arguments)
        assert ended.code == 2
        assert "nothing to say" in plain(ended)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams(tmp_path: Path, closed: str) -> None:
    command = f'"$0" -m limpet config get agent.limits.steps {closed}'
    done = subprocess.run(
        ["/bin/sh", "-c", command, sys.executable], env=environment(tmp_path), capture_output=True, timeout=60
    )
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr


def test_a_turn_with_closed_standard_streams(tmp_path: Path) -> None:
    code = (
        "import os, sys; os.close(0); os.close(2); sys.stdin = sys.stderr = None;"
        "from limpet.cli import terminal, ask; terminal.prepare_streams();"
        "assert [os.fstat(n).st_rdev for n in (0, 2)] == [os.stat('/dev/null').st_rdev] * 2;"
        "assert not ask.can_ask()"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_bytes_that_are_no_text_on_the_command_line(tmp_path: Path) -> None:
    ended = ask(tmp_path, last_words, "agent", "-m", b"lone \xed\xa0\x80 and \xff bytes")
    assert ended.code == 0, ended.err
    assert "lone ��� and � bytes" in ended.out


def test_standard_input_with_a_lone_surrogate_is_refused(tmp_path: Path) -> None:
    ended = ask(tmp_path, [OK], "agent", stdin=b"x \xed\xa0\x80 y")
    assert ended.code == 2
    assert "not text" in plain(ended)


@pytest.mark.parametrize(
    "arguments",
    [
        ("agent", "-m", "hi", "--session", b"s\xff"),
        ("agent", "-m", "hi", "--model", b"openai/\xff"),
        ("agent", "-m", "hi", b"@none\xff.txt"),
        ("sessions", "show", b"\xff"),
        ("config", "set", "user.name", b"J\xff"),
        ("config", "get", b"\xff"),
        ("onboard", "--yes", "--no-test", "--name", b"J\xff"),
    ],
)
def test_such_bytes_in_any_other_place(tmp_path: Path, arguments: tuple[str | bytes, ...]) -> None:
    ended = ask(tmp_path, [OK], *arguments)
    assert ended.code in (0, 2)
    plain(ended)


def test_a_locale_without_letters_loses_none(tmp_path: Path) -> None:
    poor = {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    ended = ask(tmp_path, last_words, "agent", "-m", "Grüße 日本", "--json", **poor)
    assert ended.code == 0, ended.err
    events = [json.loads(line) for line in ended.out.splitlines()]
    assert "Grüße 日本" in events[-1]["text"]
    exported = run(tmp_path, "sessions", "export", "--format", "jsonl", **poor)
    assert "Grüße 日本" in exported.out


def test_conversations_are_for_their_owner_only(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert ask(tmp_path, [OK], "agent", "-m", "hi").code == 0
    open_to_others = [path.name for path in tmp_path.glob("limpet.db*") if path.stat().st_mode & 0o077]
    assert open_to_others == []


def test_json_lines_in_every_case(tmp_path: Path) -> None:
    for reply, code in ((OK, 0), (Reply(status=400, body={"error": {"message": "no"}}), 3)):
        for message in ("hi", "/status", "/nosuch"):
            ended = ask(tmp_path, [reply], "agent", "-m", message, "--json")
            assert ended.code == (code if message == "hi" else 0)
            assert all(json.loads(line)["event"] for line in ended.out.splitlines())
    ended = ask(tmp_path, [OK], "agent", "-m", "hi", "@nowhere", "--json")
    assert (ended.code, json.loads(ended.out.splitlines()[-1])["event"]) == (2, "error")


def test_a_text_that_only_begins_with_a_slash_is_for_the_model(tmp_path: Path) -> None:
    ended = ask(tmp_path, last_words, "agent", "-m", "/etc/hosts what is it?")
    assert ended.out == "/etc/hosts what is it?\n"


def test_a_home_with_a_very_long_path(tmp_path: Path) -> None:
    home = tmp_path / ("d" * 100) / ("e" * 100)
    assert ask(home, [OK], "agent", "-m", "hi").out == "fine\n"


def test_a_reader_that_leaves_in_the_middle(tmp_path: Path) -> None:
    command = '"$0" -m limpet agent -m hi --json | head -1'

    async def main() -> tuple[bytes, bytes]:
        async with FakeOpenAI([OK]) as server:
            process = await asyncio.create_subprocess_exec(
                *("/bin/sh", "-c", command, sys.executable),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environment(tmp_path, **at(server)),
            )
            return await asyncio.wait_for(process.communicate(), GUARD)

    out, err = asyncio.run(main())
    assert json.loads(out)
    assert b"Traceback" not in err
