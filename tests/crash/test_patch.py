"""SIGKILL between the files of one patch: in the end all of it is done, once, and all of it can be undone."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.crash.patch_child import prepare
from tests.crash.processes import ROOT, finish, rows

MOST = 40
"""More steps than there are: the last ones are not killed."""
PATCHED = {"a.txt": "A\n", "folder/deep/c.txt": "B\n", "new.txt": "new\n"}


async def child(folder: Path, kill_at: int, *lines: str) -> tuple[int, str, str]:
    return await finish(
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.crash.patch_child", str(folder), str(kill_at), *lines),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )
    )


def contents(place: Path) -> dict[str, str]:
    files = (path for path in place.rglob("*") if path.is_file())
    found = {str(path.relative_to(place)): path.read_text() for path in files}
    return {name: text for name, text in found.items() if not name.startswith(".limpet/")}


@pytest.mark.parametrize("step", [*range(1, MOST, 2), MOST])
def test_killed_at_any_step_the_whole_patch_is_done(tmp_path: Path, step: int) -> None:
    code, printed, errors = asyncio.run(child(tmp_path, step))
    assert code == -9 or (code == 0 and int(printed) < step), errors
    undo = ("/rollback", "/rollback yes") if step % 4 == 1 else ()
    code, _, errors = asyncio.run(child(tmp_path, 0, *undo))
    assert code == 0, errors
    if undo:
        prepare(tmp_path / "other")
        assert contents(tmp_path / "workspace") == contents(tmp_path / "other")
    else:
        assert contents(tmp_path / "workspace") == PATCHED
    assert rows(tmp_path, "SELECT DISTINCT state FROM inbox") == [("done",)]
