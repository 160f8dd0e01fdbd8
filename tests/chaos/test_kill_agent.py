"""SIGKILL for `limpet agent` at random moments, again and again, while it works with real tools in the sandbox.

The seed is printed and may be set (`LIMPET_CHAOS_SEED`); `LIMPET_CHAOS_SECONDS` is how long it goes on.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from limpet.sandbox.run import Sandbox
from limpet.testing.fakes.openai import FakeOpenAI
from limpet.testing.fakes.script import Call, Reply, Seen
from tests.cli.program import at
from tests.crash.processes import finish, limpet, lines, rows

SECONDS = float(os.environ.get("LIMPET_CHAOS_SECONDS", "5"))
SEED = int(os.environ.get("LIMPET_CHAOS_SEED", "0")) or random.randrange(1, 1_000_000)
LATEST = 1.2
"""Seconds after its start at which a process is killed at the latest."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(SECONDS + 120),
    pytest.mark.skipif(Sandbox().report.kind == "none", reason="commands would ask"),
]


class Result(msgspec.Struct):
    assistant: str
    index: int
    name: str
    result: dict[str, object]


def script(seen: Seen) -> Reply:
    """Three calls for the newest job, then a word that it is done."""
    text = seen.raw.decode()
    job = re.findall(r"job (\d+)\.", text)[-1]
    newest = text.rpartition('"role":"')[2]
    if newest.startswith("tool"):
        return Reply(text=(f"done {job}", "."), gap=0.01)
    return Reply(
        text=("Working.",),
        calls=(
            Call("write_file", json.dumps({"path": f"file{job}.txt", "content": job * 100})),
            Call("exec", json.dumps({"command": f"echo {job} >> log.txt"})),
            Call("list_dir", json.dumps({"path": "."})),
        ),
        gap=0.01,
    )


async def hunt(home: Path, server: FakeOpenAI, chance: random.Random) -> tuple[int, str]:
    """Say one job after the other, killing each process; gives how many, and all that was shown."""
    until = asyncio.get_running_loop().time() + SECONDS
    number, shown = 0, ""
    while asyncio.get_running_loop().time() < until or number < 3:
        number += 1
        process = await limpet(home, "agent", "-m", f"job {number}.", **at(server))
        killer = asyncio.get_running_loop().call_later(chance.uniform(0.15, LATEST), kill, process)
        shown += (await finish(process))[1] + "\n"
        killer.cancel()
        assert rows(home, "PRAGMA quick_check") == [("ok",)] if (home / "limpet.db").exists() else True
    for _ in range(2):
        number += 1
        code, out, err = await finish(await limpet(home, "agent", "-m", f"job {number}.", **at(server)))
        assert code == 0, err
        shown += out + "\n"
    return number, shown


def kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()


def test_nothing_is_lost_and_nothing_is_done_twice(tmp_path: Path) -> None:
    print(f"seed {SEED}")

    async def main() -> tuple[int, str]:
        async with FakeOpenAI(script) as server:
            found = await hunt(tmp_path, server, random.Random(SEED))
            assert server.refusals == []
            return found

    number, shown = asyncio.run(main())
    check_messages(tmp_path, number)
    check_acts(tmp_path)
    check_replies(tmp_path, shown)
    assert rows(tmp_path, "PRAGMA integrity_check") == [("ok",)]
    assert left_running(tmp_path) == []


def check_messages(home: Path, number: int) -> None:
    """Each message that was stored is in the log once, and every turn has ended."""
    stored = [json.loads(str(row[0], "utf-8") if isinstance(row[0], bytes) else str(row[0])) for row in payloads(home)]
    jobs = Counter(re.findall(r"job (\d+)\.", " ".join(item["text"] for item in stored)))
    logged = Counter(re.findall(r"job (\d+)\.", " ".join(entries(home, "user"))))
    assert logged == jobs
    assert set(jobs.values()) == {1}
    assert {str(number), str(number - 1)} <= jobs.keys()
    assert {row[0] for row in rows(home, "SELECT DISTINCT state FROM inbox")} == {"done"}
    assert {row[0] for row in rows(home, "SELECT DISTINCT state FROM turns")} <= {"done", "failed", "interrupted"}


def check_acts(home: Path) -> None:
    """Each call has one result; what had an effect had it once, and where the result says so it is there."""
    workspace = home / "workspace"
    appended = Counter(lines(workspace / "log.txt"))
    assert set(appended.values()) <= {1}
    asked: dict[tuple[str, int], str] = {}
    for name, payload in rows(home, "SELECT id, CAST(payload AS TEXT) FROM entries WHERE kind = 'assistant'"):
        content = json.loads(str(payload))["message"]["content"]
        calls = [block for block in content if block["type"] == "call"]
        asked |= {(str(name), index): call["arguments"] for index, call in enumerate(calls)}
    results = [msgspec.json.decode(text, type=Result) for text in entries(home, "tool_result")]
    assert Counter((one.assistant, one.index) for one in results) == dict.fromkeys(asked, 1)
    for one in results:
        arguments = json.loads(asked[one.assistant, one.index])
        if one.result.get("is_error"):
            continue
        if one.name == "exec":
            assert appended[arguments["command"].split()[1]] == 1
        if one.name == "write_file":
            assert (workspace / arguments["path"]).read_text() == arguments["content"]
    assert not list(workspace.glob("**/.*tmp*"))


def check_replies(home: Path, shown: str) -> None:
    """Each turn that is done has one reply; each was shown once, or it is known that it may not have been."""
    parts = rows(home, "SELECT text, state FROM outbox WHERE kind = 'reply'")
    done = rows(home, "SELECT count(*) FROM turns WHERE state = 'done'")[0][0]
    assert len({text for text, _ in parts}) == done
    for text, state in parts:
        assert state in ("sent", "unknown", "expired")
        assert shown.count(f"{text}\n") <= 1
        assert state != "sent" or f"{text}\n" in shown


def payloads(home: Path) -> list[tuple[object, ...]]:
    return rows(home, "SELECT payload FROM inbox")


def entries(home: Path, kind: str) -> list[str]:
    return [str(row[0]) for row in rows(home, f"SELECT CAST(payload AS TEXT) FROM entries WHERE kind = '{kind}'")]


def left_running(home: Path) -> list[str]:
    """Processes of a killed agent that still live."""
    found: list[str] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(home) in words:
            found.append(words)
    return found
