"""SIGKILL for the real gateway as soon as it has answered 202: what it has taken is worked on once, and only once."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import socket
import sys
from contextlib import asynccontextmanager, closing
from pathlib import Path

import aiohttp
import apsw
import pytest

from limpet.testing.fakes import FakeOpenAI, Reply
from limpet.testing.fakes.script import Seen
from tests.cli.program import environment

TOKEN = "hooks-token-0123456789"
EVENTS = 3
CONFIG = """
agent.model = "lab/dreamer"
gateway.port = {port}
[webhooks]
token = "{token}"
[providers.lab]
base_url = "{url}"
api_key = "sk-test"
"""
pytestmark = pytest.mark.timeout(240)


@asynccontextmanager
async def gateway(home: Path, url: str):
    """A gateway in a process of its own, killed at the end."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "limpet", "gateway", env=environment(home), stdout=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(60), aiohttp.ClientSession() as session:
            while True:
                try:
                    async with session.get(f"{url}/healthz") as answer:
                        assert answer.status == 200
                        break
                except aiohttp.ClientError:
                    await asyncio.sleep(0.05)
        yield child
    finally:
        if child.returncode is None:
            child.send_signal(signal.SIGKILL)
        await child.wait()


async def post(url: str, key: str) -> tuple[int, object]:
    headers = {"Authorization": f"Bearer {TOKEN}", "Idempotency-Key": key}
    async with aiohttp.ClientSession() as session:
        call = {"message": f"event {key}", "deliver": False}
        async with session.post(f"{url}/hooks/agent", json=call, headers=headers) as answer:
            return answer.status, await answer.json()


def rows(home: Path, query: str) -> list[tuple[object, ...]]:
    with closing(apsw.Connection(str(home / "limpet.db"), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        return list(connection.execute(query))


def test_what_was_answered_202_is_done_once_whenever_it_is_killed(tmp_path: Path) -> None:
    def script(seen: Seen) -> Reply:
        return Reply(text=("a", "b", "c"), gap=0.05)

    async def main() -> tuple[list[int], list[object]]:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = int(free.getsockname()[1])
        url, codes = f"http://127.0.0.1:{port}", list[int]()
        async with FakeOpenAI(script) as model:
            tmp_path.joinpath("config.toml").write_text(CONFIG.format(port=port, token=TOKEN, url=model.base_url))
            for number in range(EVENTS):
                async with gateway(tmp_path, url) as child:
                    status, _ = await post(url, f"k{number}")
                    child.send_signal(signal.SIGKILL)
                    codes.append(status)
            async with gateway(tmp_path, url):
                again = [dict((await post(url, f"k{number}"))[1])["new"] for number in range(EVENTS)]  # type: ignore[call-overload]
                async with asyncio.timeout(120):
                    while rows(tmp_path, "SELECT 1 FROM inbox WHERE state != 'done'"):
                        await asyncio.sleep(0.1)
        return codes, again

    codes, again = asyncio.run(main())
    assert codes == [202] * EVENTS
    assert again == [False] * EVENTS
    found = rows(tmp_path, "SELECT event, count(*) FROM inbox GROUP BY event ORDER BY event")
    assert found == [(f"k{number}", 1) for number in range(EVENTS)]
    told = rows(tmp_path, "SELECT turn, count(*) FROM entries WHERE kind = 'user' GROUP BY turn")
    assert [count for _, count in told] == [1] * EVENTS


def test_each_dropped_file_is_done_once_whenever_the_gateway_is_killed(tmp_path: Path) -> None:
    async def main() -> None:
        chance = random.Random(7)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = int(free.getsockname()[1])
        async with FakeOpenAI(lambda seen: Reply(text=("a", "b"), gap=0.02)) as model:
            tmp_path.joinpath("config.toml").write_text(CONFIG.format(port=port, token=TOKEN, url=model.base_url))
            folder = tmp_path / "events"
            folder.mkdir(mode=0o700)
            for number in range(12):
                wanted = {"kind": "agent", "text": f"event {number}", "deliver": False}
                folder.joinpath(f"{number}.json").write_text(json.dumps(wanted))
            for _ in range(EVENTS):
                async with gateway(tmp_path, f"http://127.0.0.1:{port}"):
                    await asyncio.sleep(chance.uniform(0.0, 0.15))
            async with gateway(tmp_path, f"http://127.0.0.1:{port}"), asyncio.timeout(120):
                while len(list(folder.glob("done/*.json"))) < 12:
                    await asyncio.sleep(0.1)
                while rows(tmp_path, "SELECT 1 FROM inbox WHERE state != 'done'"):
                    await asyncio.sleep(0.1)

    asyncio.run(main())
    assert rows(tmp_path, "SELECT count(*), count(DISTINCT event) FROM inbox") == [(12, 12)]
    told = rows(tmp_path, "SELECT turn, count(*) FROM entries WHERE kind = 'user' GROUP BY turn")
    assert [count for _, count in told] == [1] * 12
