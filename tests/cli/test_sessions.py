"""`limpet sessions`: what conversations hold, and what the owner does with them."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from limpet.app import COMMANDS
from limpet.assistant.conversation import Conversation
from limpet.assistant.ending import close_ended
from limpet.cli import run
from limpet.store import spending, usage
from limpet.store.usage import Reservation
from limpet.testing.scripted import Answer, ScriptedModel, call
from limpet.types.usage import Usage
from tests.assistant.room import KEY, Ledger, said
from tests.assistant.room import home as room
from tests.crash.processes import rows
from tests.session.test_erase import on_disk

Limpet = Callable[..., tuple[int, str, str]]
SIDE = "agent:main:cli:side"


@pytest.fixture
def limpet(home: Path, capsys: pytest.CaptureFixture[str]) -> Limpet:
    """`limpet sessions` in this process: exit code, output and errors."""

    def command(*arguments: str) -> tuple[int, str, str]:
        code = run(["sessions", *arguments], commands=COMMANDS, opener="limpet.wiring:open_assistant")
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return command


def talk(folder: Path, *lines: str, key: str = KEY, script: tuple[Answer | str, ...] = ("fine",)) -> None:
    """Say `lines` in a session of the home `folder`."""

    async def main() -> None:
        folder.mkdir(exist_ok=True)
        model = ScriptedModel(script, forever=True)
        async with room(folder, model, tools=Ledger(folder).tools()) as (services, _):
            for line in lines:
                await Conversation(services, key).send(said(line))
            await close_ended(services, key)

    asyncio.run(main())


def spend(folder: Path, session: str, dollars: float) -> None:
    """A request of a session, which cost so much."""

    async def main() -> None:
        async with room(folder, ScriptedModel([])) as (services, _):
            row = Reservation(id="q1", session=session, turn="t", provider="p", model="m")
            await services.store.write(lambda c: usage.reserve(c, row, owner=services.owner, now=services.clock.now()))
            used = Usage(input=10, cost=round(dollars * 1e6))
            await services.store.write(lambda c: usage.settle(c, "q1", used, state="done"))

    asyncio.run(main())


def ids(folder: Path, key: str = KEY) -> list[str]:
    return [str(name) for (name,) in rows(folder, f"SELECT id FROM sessions WHERE key = '{key}' ORDER BY created, id")]


def test_the_list_says_what_each_was_about(home: Path, limpet: Limpet) -> None:
    talk(home, "plan the garden", "and the fence")
    talk(home, "count sheep", "/new", key=SIDE)
    spend(home, ids(home)[0], 1.5)
    _, out, _ = limpet("list")
    assert "plan the garden" in out
    assert "2 turns" in out
    assert "$1.50" in out
    assert "ended (new)" in out
    assert "plan" not in limpet("list", "--ended")[1]
    assert "sheep" not in limpet("list", "--live")[1]
    assert "plan" not in limpet("list", "--key", "side")[1]
    row = json.loads(limpet("list", "--json", "--key", "main:main")[1])
    assert (row["title"], row["turns"], row["cost"]) == ("plan the garden", 2, 1_500_000)


def test_an_ended_session_is_found_by_its_name_too(home: Path, limpet: Limpet) -> None:
    talk(home, "count sheep", "/new", key=SIDE)
    assert "count sheep" in limpet("show", "side")[1]


def test_a_session_is_found_by_name_key_and_beginning_of_its_id(home: Path, limpet: Limpet) -> None:
    talk(home, "count sheep", key=SIDE)
    (name,) = ids(home, SIDE)
    for word in ("side", SIDE, name, name[:20]):
        assert "count sheep" in limpet("show", word)[1]
    assert limpet("show", "nowhere")[0] == 2


def test_search_shows_hits_with_their_surroundings(home: Path, limpet: Limpet) -> None:
    talk(home, "my cat is called Miso", "what else?")
    _, out, _ = limpet("search", "cat", "MISO")
    assert f"{KEY}  {ids(home)[0]}" in out
    assert "> you: my cat is called Miso" in out
    assert "  agent: fine" in out
    hit = json.loads(limpet("search", "--json", "--session", "main", "miso")[1])
    assert [one["who"] for one in hit["around"]] == ["you", "agent"]
    assert limpet("search", "unicorn")[1] == "Nothing was found.\n"
    assert limpet("search", "x", "--session", "nowhere")[0] == 2


def test_search_without_any_conversation_finds_nothing(home: Path, limpet: Limpet) -> None:
    assert limpet("search", "word") == (0, "Nothing was found.\n", "")


def test_the_export_for_openclaw_is_a_tree_of_messages(home: Path, limpet: Limpet, tmp_path: Path) -> None:
    talk(home, "go", script=(Answer(calls=(call("look", {"word": "b"}),)), "done"))
    talk(home, "/label here", "/rewind 1", "again")
    file = tmp_path / "out.jsonl"
    assert limpet("export", "--format", "openclaw", "-o", str(file))[0] == 0
    header, *lines = map(json.loads, file.read_text().splitlines())
    assert header["type"] == "session"
    assert header["version"] == 3
    assert header["id"] == ids(home)[0]
    known = {None}
    for line in lines:
        assert line["parentId"] in known
        known.add(line["id"])
    messages = [line["message"] for line in lines if line["type"] == "message"]
    assert [one["role"] for one in messages] == ["user", "assistant", "toolResult", "assistant", "user", "assistant"]
    assert messages[1]["content"][0] == {
        "type": "toolCall",
        "id": "call_1_1",
        "name": "look",
        "arguments": {"word": "b"},
    }
    assert messages[2]["toolCallId"] == "call_1_1"
    assert messages[1]["stopReason"] == "toolUse"
    assert [line["label"] for line in lines if line["type"] == "label"] == ["here"]


def test_show_leaves_out_what_was_left_behind(home: Path, limpet: Limpet) -> None:
    talk(home, "one", "two", "/rewind 1", "three")
    _, out, err = limpet("show", "main")
    assert "two" not in out
    assert "three" in out
    assert "2 messages on other branches" in err
    assert "two" in limpet("show", "main", "--all")[1]


def test_fork_label_and_rewind_from_the_command_line(home: Path, limpet: Limpet) -> None:
    talk(home, "one", "two")
    code, out, _ = limpet("label", "main", "start", "--at", str(rows(home, "SELECT id FROM entries")[2][0]))
    assert (code, out) == (0, "Labelled start.\n")
    assert "labels: start" in limpet("rewind", "main")[1]
    assert "after “one”" in limpet("rewind", "main", "start")[1]
    assert limpet("fork", "main", "--name", "copy")[0] == 0
    assert "two" not in limpet("show", "copy")[1].split("Limpet")[0]
    assert rows(
        home, "SELECT count(*) FROM entries WHERE session IN (SELECT id FROM sessions WHERE key LIKE '%copy')"
    ) == [(4,)]
    code, _, err = limpet("fork", "main", "--name", "copy")
    assert code == 2
    assert "already" in err
    assert limpet("rewind", "main", "9")[0] == 2
    assert limpet("label", "main", "7")[0] == 2


def test_delete_asks_archives_and_keeps_what_it_cost(home: Path, limpet: Limpet) -> None:
    talk(home, "plan the garden", "/fork keep")
    (name,) = ids(home)
    spend(home, name, 1.5)
    code, _, err = limpet("delete", "main")
    assert code == 2
    assert "--yes" in err
    code, out, _ = limpet("delete", "main", "--yes")
    assert code == 0
    (archive,) = (home / "archive").iterdir()
    assert archive.name.endswith(f"{name}.jsonl.gz")
    lines = gzip.decompress(archive.read_bytes()).decode().splitlines()
    assert json.loads(lines[0])["session"]["id"] == name
    assert "plan the garden" in lines[2]
    assert str(archive) in out
    assert ids(home) == []
    assert rows(home, "SELECT count(*) FROM entries WHERE session NOT IN (SELECT id FROM sessions)") == [(0,)]

    async def spent() -> list[str]:
        async with room(home, ScriptedModel([])) as (services, _):
            return [
                f"{row.name} {row.usage.cost}"
                for group in ("agent", "session")
                for row in services.store.read(lambda c, group=group: spending.spent(c, group, since=0))
            ]

    assert asyncio.run(spent()) == ["main 1500000", f"{KEY} 1500000"], "it is still known whose"
    assert "plan the garden" in limpet("show", "keep")[1], "a fork needs nothing of its origin"
    assert len(limpet("search", "garden", "--json")[1].splitlines()) == 1


def test_delete_without_an_archive(home: Path, limpet: Limpet) -> None:
    talk(home, "plan the quagga")
    limpet("search", "quagga")
    assert on_disk(home, "quagga")
    assert "No copy was kept" in limpet("delete", "main", "--yes", "--no-archive")[1]
    assert on_disk(home, "quagga") == []
    assert not (home / "archive").exists()


def test_erase_says_what_it_could_not_reach(home: Path, limpet: Limpet) -> None:
    talk(home, "my word is quagga")
    (name,) = ids(home)
    note = home / "workspace" / "memory" / "HISTORY.md"
    note.parent.mkdir(parents=True)
    note.write_text(f"[2026-01-01 10:00] ({name}) words were said")
    (home / "limpet.db.v2.bak").write_text("old")
    _, out, _ = limpet("erase", "main", "--yes")
    assert "Erased 3 entries in 1 conversation, for good." in out
    assert "memory/HISTORY.md" in out
    assert "limpet.db.v2.bak" in out
    assert "provider" in out
    assert "quagga" not in limpet("show", "main")[1]
    assert "(erased)" in limpet("show", "main", "--ids")[1]
    assert rows(home, "SELECT entries, why FROM removals") == [(3, "erased by the owner")]


def test_one_entry_can_be_erased(home: Path, limpet: Limpet) -> None:
    talk(home, "my word is quagga", "hello there")
    entry = str(rows(home, "SELECT id FROM entries WHERE kind = 'user'")[0][0])
    assert limpet("erase", "main", "--entry", entry, "--yes")[0] == 0
    _, out, _ = limpet("show", "main")
    assert "quagga" not in out
    assert "hello there" in out
    assert limpet("erase", "main", "--entry", "nothing-like-it", "--yes")[0] == 2


def test_prune_lets_go_what_is_too_old(home: Path, limpet: Limpet) -> None:
    talk(home, "long ago", "/new", "still here")
    old, new = ids(home)
    assert limpet("prune")[1] == "0 gone.\n", "for ever is the default"
    (home / "config.toml").write_text("version = 1\n[sessions]\nkeep_days = 30\n")
    assert old in limpet("prune", "--dry-run")[1]
    assert ids(home) == [old, new]
    assert "1 gone." in limpet("prune")[1]
    assert ids(home) == [new]
    assert len(list((home / "archive").iterdir())) == 1
