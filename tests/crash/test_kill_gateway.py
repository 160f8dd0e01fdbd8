"""SIGKILL of the real gateway in the middle of a job's run, and while a helper works."""

from __future__ import annotations

import asyncio
import signal
from asyncio.subprocess import Process
from pathlib import Path

from limpet.testing.fakes import FakeOpenAI, Reply
from limpet.testing.fakes.script import Call, Seen
from tests.crash.processes import finish, limpet, rows, until

RUNS = "SELECT state, attempt, reason FROM occurrences WHERE job NOT LIKE 'heartbeat%'"


def prepare(folder: Path, server: FakeOpenAI) -> None:
    (folder / "config.toml").write_text(
        f'agent.model = "lab/dreamer"\ngateway.port = 0\n[providers.lab]\nbase_url = "{server.base_url}"\n'
        'api_key = "sk-test"\n'
    )


async def done(folder: Path, *arguments: str) -> str:
    code, out, errors = await finish(await limpet(folder, *arguments))
    assert code == 0, errors
    return out


async def killed(process: Process) -> None:
    process.send_signal(signal.SIGKILL)
    await process.communicate()


async def ended(process: Process) -> None:
    process.send_signal(signal.SIGTERM)
    await finish(process)


async def lived_through(folder: Path, server: FakeOpenAI, *, kills: int) -> None:
    """A job runs; the gateway is killed in each of its first runs, and lives through the next."""
    prepare(folder, server)
    await done(folder, "cron", "add", "Look", "--every", "1h", "--name", "look", "--deliver", "none")
    await done(folder, "cron", "run", "look")
    for number in range(kills):
        gateway = await limpet(folder, "gateway")
        await until(lambda number=number: len(server.requests) > number)
        assert rows(folder, RUNS)[0][:2] in {("started", 1), ("claimed", 1)}
        await killed(gateway)
    gateway = await limpet(folder, "gateway")
    await until(lambda: rows(folder, RUNS)[0][0] not in ("started", "claimed", "waiting"))
    await ended(gateway)


def test_c36_b_a_run_killed_once_goes_on_and_is_done(tmp_path: Path) -> None:
    async def main() -> int:
        def script(seen: Seen) -> Reply:
            return Reply(text=("looked",), delay=30.0 if len(server.requests) < 2 else 0.0)

        async with FakeOpenAI(script) as server:
            await lived_through(tmp_path, server, kills=1)
            return len(server.requests)

    assert asyncio.run(main()) == 2
    assert rows(tmp_path, RUNS) == [("done", 1, "")]
    assert rows(tmp_path, "SELECT state FROM turns") == [("done",)]


def test_c36_b_a_run_killed_twice_is_one_interrupted_record(tmp_path: Path) -> None:
    async def main() -> int:
        async with FakeOpenAI(lambda seen: Reply(text=("never",), delay=30.0)) as server:
            await lived_through(tmp_path, server, kills=2)
            return len(server.requests)

    assert asyncio.run(main()) == 2
    ((state, attempt, reason),) = rows(tmp_path, RUNS)
    assert (state, attempt) == ("interrupted", 1)
    assert "crashed twice" in str(reason)
    assert rows(tmp_path, "SELECT state FROM turns") == [("interrupted",)]


def test_c58e_a_helper_of_a_run_is_heard_of_once_though_the_gateway_is_killed(tmp_path: Path) -> None:
    helped: list[Seen] = []

    def script(seen: Seen) -> Reply:
        text = seen.raw.decode()
        if "You are a helper" in text:
            helped.append(seen)
            return Reply(text=("the sea is blue",), delay=30.0 if len(helped) == 1 else 0.0)
        if "helper_result" in text:
            return Reply(text=("heard of it",))
        return Reply(text=("on it",)) if "has it" in text else Reply(calls=(Call("spawn", '{"task": "look"}'),))

    async def main() -> None:
        async with FakeOpenAI(script) as server:
            prepare(tmp_path, server)
            await done(tmp_path, "cron", "add", "Look", "--every", "1h", "--name", "look", "--deliver", "none")
            await done(tmp_path, "cron", "run", "look")
            gateway = await limpet(tmp_path, "gateway")
            await until(lambda: bool(helped) and rows(tmp_path, RUNS)[0][0] == "done")
            await killed(gateway)
            gateway = await limpet(tmp_path, "gateway")
            await until(lambda: rows(tmp_path, "SELECT state FROM inbox WHERE event LIKE 'helper:%'") == [("done",)])
            await ended(gateway)

    asyncio.run(main())
    assert rows(tmp_path, "SELECT state, answer FROM helpers") == [("done", "the sea is blue")]
    query = "SELECT turns.state FROM turns JOIN sessions ON sessions.id = turns.session WHERE key NOT LIKE '%subagent%'"
    assert rows(tmp_path, query) == [("done",), ("done",)]
