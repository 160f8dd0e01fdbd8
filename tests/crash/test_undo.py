"""SIGKILL while a turn changes the workspace and while that is taken back: in the end it is as it was."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.crash.processes import ROOT, finish, rows
from tests.crash.undo_child import prepare
from tests.undo.ground import picture

MOST = 70
"""More steps than there are: the last ones are not killed."""


async def child(folder: Path, kill_at: int) -> tuple[int, str, str]:
    return await finish(
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.crash.undo_child", str(folder), str(kill_at)),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )
    )


@pytest.mark.parametrize("step", [*range(1, MOST, 3), MOST])
def test_killed_at_any_step_the_workspace_comes_back(tmp_path: Path, step: int) -> None:
    prepare(tmp_path / "other")
    code, printed, errors = asyncio.run(child(tmp_path, step))
    assert code == -9 or (code == 0 and int(printed) < step), errors
    code, _, errors = asyncio.run(child(tmp_path, 0))
    assert code == 0, errors
    assert picture(tmp_path / "workspace") == picture(tmp_path / "other")
    assert rows(tmp_path, "SELECT DISTINCT state FROM inbox") == [("done",)]
    notes = "SELECT count(*) FROM entries WHERE kind = 'note' AND CAST(payload AS TEXT) LIKE '%taken back by the user%'"
    assert rows(tmp_path, notes)[0][0] in (1, 2)
