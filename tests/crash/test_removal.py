"""SIGKILL around the commit of a fork, an erasure and a deletion: all of it has happened, or nothing."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from limpet.assistant.conversation import Conversation
from limpet.testing.scripted import ScriptedModel
from tests.assistant.room import KEY, home, said
from tests.crash.processes import ROOT, finish, rows

WORDS = "remember the quagga"


async def killed(folder: Path, act: str, step: int) -> None:
    async with home(folder, ScriptedModel(["yes"])) as (services, _):
        await Conversation(services, KEY).send(said(WORDS))
    code, _, _ = await finish(
        await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.crash.removal", str(folder), act, str(step),
            cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )
    )  # fmt: skip
    assert code == -9
    async with home(folder, ScriptedModel(["still here"])) as (services, _):
        await Conversation(services, KEY).send(said("go on"))


def count(folder: Path, query: str) -> object:
    return rows(folder, f"SELECT count(*) FROM {query}")[0][0]


@pytest.mark.parametrize(("step", "done"), [(1, False), (2, True)])
@pytest.mark.parametrize("act", ["fork", "erase", "delete"])
def test_it_is_whole_or_not_at_all(tmp_path: Path, act: str, step: int, done: bool) -> None:
    asyncio.run(killed(tmp_path, act, step))
    told = count(tmp_path, f"entries WHERE instr(payload, CAST('{WORDS}' AS BLOB))")
    match act:
        case "fork":
            assert told == (2 if done else 1)
            assert count(tmp_path, "sessions WHERE key LIKE '%copy'") == int(done)
        case "erase":
            assert told == int(not done)
            assert count(tmp_path, "removals") == int(done)
            assert count(tmp_path, f"inbox WHERE instr(payload, CAST('{WORDS}' AS BLOB))") == int(not done)
        case _:
            assert told == int(not done)
            assert len(list((tmp_path / "archive").glob("*.jsonl.gz"))) == 1, "written before anything goes"
    assert count(tmp_path, "turns WHERE state <> 'done'") == 0
