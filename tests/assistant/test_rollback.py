"""`/rollback` from end to end: shown first, done on a second word, told to the model, and itself taken back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from msgspec import structs

from limpet.assistant.conversation import Conversation
from limpet.assistant.services import Services
from limpet.sandbox.run import Sandbox
from limpet.store import entries, sessions, turns
from limpet.testing.scripted import Answer, ScriptedModel, Step, call
from limpet.toolkit.schema import tool
from limpet.tools.exec import ExecSettings, make_exec
from limpet.tools.files_write import delete_path, write_file
from limpet.types.entry import Flush, Note, Rollback, UndoPoint
from limpet.types.ports import Tool, ToolContext
from limpet.types.tool import ToolResult, text_result
from tests.assistant.room import KEY, home, replies, said


def command(work: Callable[[Path], object]) -> Tool:
    """A tool that does `work` in the workspace, as a command would."""

    @tool(effect="unsafe")
    async def run(context: ToolContext, what: str = "") -> ToolResult:
        """Run."""
        work(Path(context.workspace))
        return text_result("ran")

    return run


def write(path: str, content: str) -> Answer:
    return Answer(calls=(call("write_file", {"path": path, "content": content}),))


RUN = Answer(calls=(call("run", {"what": "make it"}),))


def talk(
    folder: Path, script: Sequence[Step], lines: Sequence[str], *, run: Callable[[Path], object] = lambda place: None
) -> tuple[list[str], ScriptedModel, list[object]]:
    """Say `lines` one after the other; gives the replies, the model and the payloads of the log."""
    model = ScriptedModel([*script, *["ok"] * 9])

    async def main() -> tuple[list[str], list[object]]:
        async with home(folder, model, tools=(command(run), delete_path, write_file), undo=True) as (services, _):
            conversation = Conversation(services, KEY)
            for line in lines:
                await conversation.send(said(line))
            return replies(services), log(services)

    found = asyncio.run(main())
    return found[0], model, found[1]


def log(services: Services) -> list[object]:
    rows = services.store.read(lambda c: c.execute("SELECT DISTINCT session FROM entries").fetchall())
    found = [services.store.read(lambda c, name=name: entries.load(c, str(name))) for (name,) in rows]
    return [entry.payload for session in found for entry in session]


def test_a_rollback_shows_then_restores_then_tells_the_model(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    memory = tmp_path / "workspace" / "MEMORY.md"
    memory.write_text("- likes tea\n")
    lines = ["go", "/rollback", "/rollback yes", "and now?"]
    said_back, model, payloads = talk(tmp_path, [write("MEMORY.md", "- likes coffee\n"), "done"], lines)
    assert "put back MEMORY.md" in said_back[1]
    assert "+- likes tea" in said_back[1]
    assert "-- likes coffee" in said_back[1]
    assert memory.read_text() == "- likes tea\n"
    assert "1 of 1 paths are again" in said_back[2]
    assert "MEMORY.md" in str(model.requests[-1].messages[-1])
    assert "read them anew" in str(model.requests[-1].messages[-1])
    assert [one.files for one in payloads if isinstance(one, Rollback)] == [("MEMORY.md",)]


def test_what_is_shown_changes_nothing_and_yes_alone_does_nothing(tmp_path: Path) -> None:
    said_back, _, _ = talk(tmp_path, [write("a.txt", "new"), "done"], ["go", "/rollback yes", "/rollback", "/rollback"])
    assert "Nothing was shown" in said_back[1]
    assert "remove a.txt" in said_back[2] == said_back[3]
    assert (tmp_path / "workspace" / "a.txt").exists()


def test_a_command_is_undone_as_a_whole_and_what_it_did_elsewhere_is_named(tmp_path: Path) -> None:
    place = tmp_path / "workspace"
    place.mkdir()
    (place / "old.txt").write_text("old")
    (place / "run.sh").write_text("#!/bin/sh\n")

    def work(folder: Path) -> None:
        (folder / "old.txt").unlink()
        (folder / "run.sh").chmod(0o777)
        (folder / "deep" / "er").mkdir(parents=True)
        (folder / "deep" / "er" / "new").write_text("x")

    mode = (place / "run.sh").stat().st_mode
    said_back, _, payloads = talk(tmp_path, [RUN, "done"], ["go", "/rollback", "/rollback yes"], run=work)
    assert "bring back old.txt" in said_back[1]
    assert "remove the folder deep" in said_back[1]
    assert "set the mode of run.sh" in said_back[1]
    assert 'run {"what":"make it"}' in said_back[1]
    assert sorted(path.name for path in place.iterdir()) == ["old.txt", "run.sh"]
    assert (place / "run.sh").stat().st_mode == mode
    assert [one.files for one in payloads if isinstance(one, UndoPoint)] == [2]


def test_what_the_owner_changed_since_is_left_and_named(tmp_path: Path) -> None:
    place = tmp_path / "workspace"
    model = ScriptedModel([write("a.txt", "new"), write("b.txt", "new"), "done"])

    async def main() -> list[str]:
        async with home(tmp_path, model, tools=(write_file,), undo=True) as (services, _):
            conversation = Conversation(services, KEY)
            await conversation.send(said("go"))
            await conversation.send(said("/rollback"))
            (place / "a.txt").write_text("mine")
            await conversation.send(said("/rollback yes"))
            assert (place / "b.txt").exists()
            await conversation.send(said("/rollback yes"))
            return replies(services)

    answers = asyncio.run(main())
    assert answers[2].startswith("Something has changed since that was shown")
    assert "a.txt: it was changed since" in answers[2]
    assert (place / "a.txt").read_text() == "mine"
    assert not (place / "b.txt").exists()


def test_a_rollback_is_taken_back_by_redo(tmp_path: Path) -> None:
    lines = ["go", "/rollback", "/rollback yes", "/rollback redo", "/rollback yes", "/rollback list"]
    said_back, _, payloads = talk(tmp_path, [write("a/b.txt", "new"), "done"], lines)
    assert "bring back a/b.txt" in said_back[3]
    assert (tmp_path / "workspace" / "a" / "b.txt").read_text() == "new"
    assert len([one for one in payloads if isinstance(one, Rollback)]) == 2
    assert len([one for one in payloads if isinstance(one, Note) and one.origin.startswith("rollback-")]) == 2
    assert said_back[5].startswith("1. the turn of ")


def test_older_turns_are_named_by_number_and_later_changes_win(tmp_path: Path) -> None:
    script = [write("a.txt", "one"), "done", write("b.txt", "two"), "done"]
    said_back, _, _ = talk(tmp_path, script, ["go", "go", "/rollback 2", "/rollback yes", "/rollback 5"])
    assert "remove a.txt" in said_back[2]
    assert not (tmp_path / "workspace" / "a.txt").exists()
    assert (tmp_path / "workspace" / "b.txt").exists()
    assert "There are 1 turns" in said_back[4]


def test_a_deleted_folder_comes_back(tmp_path: Path) -> None:
    inner = tmp_path / "workspace" / "notes" / "deep"
    inner.mkdir(parents=True)
    (inner / "a.txt").write_text("kept")
    delete = Answer(calls=(call("delete_path", {"path": "notes"}),))
    talk(tmp_path, [delete, "done"], ["go", "/rollback", "/rollback yes"])
    assert (inner / "a.txt").read_text() == "kept"


def test_a_turn_is_found_after_a_new_conversation(tmp_path: Path) -> None:
    said_back, _, _ = talk(tmp_path, [write("a.txt", "one"), "done"], ["go", "/new", "/rollback", "/rollback yes"])
    assert "remove a.txt" in said_back[2]
    assert not (tmp_path / "workspace" / "a.txt").exists()


def test_a_turn_without_changes_keeps_nothing(tmp_path: Path) -> None:
    said_back, _, _ = talk(tmp_path, ["hello"], ["hi", "/rollback"])
    assert "nothing that could be taken back" in said_back[1]
    assert not (tmp_path / "undo").exists()


def test_a_command_in_the_sandbox_is_taken_back(tmp_path: Path) -> None:
    async def main() -> None:
        async with Sandbox() as sandbox:
            if sandbox.report.kind == "none":
                pytest.skip(sandbox.report.reason)
            shell = "mkdir -p made/new && echo hi > made/new/a.md && mv tea.md old.md"
            model = ScriptedModel([Answer(calls=(call("exec", {"command": shell}),)), "done"])
            async with home(tmp_path, model, tools=(make_exec(sandbox, ExecSettings()),), undo=True) as (services, _):
                (tmp_path / "workspace" / "tea.md").write_text("- tea\n")
                conversation = Conversation(services, KEY)
                for line in ("go", "/rollback", "/rollback yes"):
                    await conversation.send(said(line))
                assert f'exec {{"command":"{shell}' in replies(services)[1]

    asyncio.run(main())
    assert [path.name for path in (tmp_path / "workspace").iterdir()] == ["tea.md"]


def test_only_the_owner_takes_back(tmp_path: Path) -> None:
    model = ScriptedModel([write("a.txt", "new"), "done"])

    async def main() -> list[str]:
        async with home(tmp_path, model, tools=(write_file,), undo=True) as (services, _):
            conversation = Conversation(services, KEY)
            await conversation.send(said("go"))
            await conversation.send(structs.replace(said("/rollback"), trust="peer"))
            return replies(services)

    assert asyncio.run(main())[1] == "Only the owner may use /rollback here."


def test_notes_that_limpet_wrote_during_the_turn_stay(tmp_path: Path) -> None:
    place = tmp_path / "workspace"
    model = ScriptedModel([RUN, "done"])

    async def main() -> list[str]:
        def work(folder: Path) -> None:
            (folder / "memory").mkdir()
            (folder / "memory" / "2026-01-01.md").write_text("- noted\n")

        async with home(tmp_path, model, tools=(command(work),), undo=True) as (services, _):
            conversation = Conversation(services, KEY)
            await conversation.send(said("go"))
            turn = services.store.read(lambda c: turns.newest(c, conversation.log().entries[0].session))
            assert turn is not None
            lease = await services.store.write(lambda c: sessions.claim(c, turn.session, owner=services.owner))
            flush = Flush(upto="", path="memory/2026-01-01.md", lines=("- noted",))
            await services.store.write(lambda c: entries.append(c, lease, flush, turn=turn.id, now=1))
            services.owner.held.clear()
            for line in ("/rollback", "/rollback yes"):
                await conversation.send(said(line))
            return replies(services)

    answers = asyncio.run(main())
    assert "memory/2026-01-01.md: Limpet's own notes were written to it meanwhile" in answers[1]
    assert (place / "memory" / "2026-01-01.md").read_text() == "- noted\n"
