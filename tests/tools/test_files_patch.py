import json
from dataclasses import replace

import pytest

from limpet.errors import ToolError
from limpet.testing.context import Recorded, call, tool_context
from limpet.tools.disk import digest
from limpet.tools.files_patch import apply_patch
from limpet.types.tool import FileIntent


def patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


ALL = patch(
    "*** Update File: a.txt", " one", "-two", "+2",
    "*** Add File: deep/new.txt", "+fresh",
    "*** Delete File: gone.txt",
    "*** Update File: run.sh", "*** Move to: bin/run.sh", "-old", "+new",
)  # fmt: skip


@pytest.fixture
def space(tmp_path):
    folder = tmp_path / "space"
    folder.mkdir()
    (folder / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    (folder / "gone.txt").write_text("gone")
    (folder / "run.sh").write_text("old\n")
    (folder / "run.sh").chmod(0o755)
    return folder


def contents(space) -> dict[str, bytes]:
    files = (path for path in space.rglob("*") if path.is_file() and ".limpet" not in path.parts)
    return {str(path.relative_to(space)): path.read_bytes() for path in files}


def test_add_update_delete_and_move_in_one(space):
    recorded = Recorded()
    result = call(apply_patch, tool_context(space, recorded=recorded), patch=ALL)
    assert contents(space) == {
        "a.txt": b"\xef\xbb\xbfone\r\n2\r\n",
        "deep/new.txt": b"fresh\n",
        "bin/run.sh": b"new\n",
    }
    assert (space / "bin/run.sh").stat().st_mode & 0o777 == 0o755
    assert result.text.startswith(
        "updated a.txt; added deep/new.txt; deleted gone.txt; moved run.sh to bin/run.sh\n---"
    )
    assert "-two\n+2\n" in result.details.diff
    (intent,) = recorded.intents
    assert [one.path.removeprefix(f"{space}/") for one in intent.each] == [
        "a.txt", "deep/new.txt", "bin/run.sh", "gone.txt", "run.sh",
    ]  # fmt: skip
    assert dict(result.details.files)[str(space / "bin/run.sh")] == digest(b"new\n")


def test_the_call_names_every_path_for_policy_and_locks(space):
    bound = apply_patch.bind(json.dumps({"patch": ALL}), workspace=str(space))
    assert {path.removeprefix(f"{space}/") for path in bound.writes} == {
        "a.txt", "deep/new.txt", "gone.txt", "run.sh", "bin/run.sh",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (("*** Update File: run.sh", "-nothing", "+x"), r"run.sh, hunk 1: its lines were not found"),
        (("*** Update File: none.txt", "-a", "+b"), "'none.txt' does not exist"),
        (("*** Add File: run.sh", "+x"), "run.sh exists already"),
        (("*** Update File: run.sh", "*** Move to: gone.txt"), "gone.txt exists already"),
        (("*** Add File: ../out.txt", "+x"), "outside the workspace"),
        (("*** Delete File: .limpet/x",), "Limpet's own state"),
        (("*** Add File: ./a.txt/b", "+x"), "is a file, not a folder"),
    ],
)
def test_nothing_is_written_unless_all_of_it_applies(space, lines, said):
    before, recorded = contents(space), Recorded()
    text = patch("*** Update File: a.txt", "-two", "+2", *lines)
    with pytest.raises(ToolError, match=said):
        call(apply_patch, tool_context(space, recorded=recorded), patch=text)
    assert contents(space) == before
    assert recorded.intents == []


def test_a_file_that_changed_since_it_was_read_is_refused(space):
    seen = {str(space / "a.txt"): digest(b"other")}
    with pytest.raises(ToolError, match=r"a.txt changed since you last read it"):
        call(apply_patch, tool_context(space, seen=seen), patch=ALL)


def test_one_file_under_two_names_is_refused(space):
    twice = patch("*** Update File: a.txt", "-two", "+2", "*** Update File: ./a.txt", "-one", "+1")
    with pytest.raises(ToolError, match="is changed twice"):
        call(apply_patch, tool_context(space), patch=twice)


@pytest.mark.parametrize("done", range(6))
def test_an_interrupted_call_does_the_rest(space, done):
    recorded = Recorded()
    pristine = {name: (data, (space / name).stat().st_mode) for name, data in contents(space).items()}
    call(apply_patch, tool_context(space, recorded=recorded), patch=ALL)
    wanted = contents(space)
    intent: FileIntent = recorded.intents[0]
    for one in intent.each[done:]:  # as a kill before these would have left them
        name = one.path.removeprefix(f"{space}/")
        (space / name).unlink(missing_ok=True)
        if name in pristine:
            (space / name).write_bytes(pristine[name][0])
            (space / name).chmod(pristine[name][1])
    call(apply_patch, replace(tool_context(space), intent=intent), patch=ALL)
    assert contents(space) == wanted


def test_a_path_cannot_be_a_file_and_a_folder(space):
    text = patch("*** Add File: k", "+1", "*** Add File: k/b", "+1")
    with pytest.raises(ToolError, match="a file and a folder"):
        call(apply_patch, tool_context(space), patch=text)
    assert not (space / "k").exists()
