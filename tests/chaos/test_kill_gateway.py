"""SIGKILL for the gateway at random moments under load, over platforms that fail: nothing lost, nothing done twice.

The seed is printed and may be set (`LIMPET_CHAOS_SEED`); `LIMPET_CHAOS_KILLS` is how often it is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import re
import signal
import sys
from collections import Counter, defaultdict
from pathlib import Path

import apsw
import pytest

from limpet.testing.channel import FakePeople, Ways
from limpet.testing.fakes import Call, FakeOpenAI, Reply
from limpet.testing.fakes.script import Seen
from limpet.testing.platform import FakePlatform, Kind, Said
from tests.chaos.gateway_child import TRAITS

KILLS = int(os.environ.get("LIMPET_CHAOS_KILLS", "6"))
SEED = int(os.environ.get("LIMPET_CHAOS_SEED", "0")) or random.randrange(1, 1_000_000)
TROUBLES: tuple[Kind, ...] = ("refuse", "limit", "lose", "unsure", "slow")
CHATS = 4
"""On each platform."""
LATEST = 1.5
"""Seconds after it is ready at which a gateway is killed at the latest."""
PREVIEW = " …"
"""How a preview ends. One that was sent when the gateway died can stay: its id was never learnt."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(KILLS * 30 + 240)]


def script(seen: Seen) -> Reply:
    """Every third message has a tool called first; the answer names the messages that it is to."""
    text = seen.raw.decode()
    answered = re.findall(r"<(\d+)>", text)
    numbers = [number for number in re.findall(r"say (\d+)\.", text) if number not in answered]
    called = text.rpartition('"role":"')[2].startswith("tool")
    if not called and numbers and int(numbers[-1]) % 3 == 0:
        return Reply(calls=(Call("list_dir", '{"path": "."}'),), gap=0.01)
    return Reply(text=("answer ", "to ", *(f"<{number}>" for number in numbers), " " + "x" * 300), gap=0.02)


class World:
    """The platforms and the people on them, as the test holds them while gateways come and go."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.chance = chance
        self.people = [FakePeople(name, "main", FakePlatform(folder / name)) for name in TRAITS]
        self.said: dict[int, Said] = {}

    async def live(self, seconds: float) -> None:
        """People talk, platforms fail, for a while."""
        async with asyncio.timeout(seconds) as limit:
            with contextlib.suppress(asyncio.CancelledError):
                while True:
                    await self.step()
                    await asyncio.sleep(self.chance.uniform(0.01, 0.25))
            assert limit.expired()

    async def step(self) -> None:
        one = self.chance.choice(self.people)
        dice = self.chance.random()
        if dice < 0.12:
            one.fail(self.chance.choice(TROUBLES), seconds=0.2)
        elif dice < 0.16:
            one.cut()
        elif dice < 0.22:
            one.doubled(self.chance.random() < 0.5)
        elif dice < 0.28 and self.said:
            number = self.chance.choice(list(self.said))
            self.on(self.said[number]).again(self.said[number])
        else:
            number = len(self.said) + 1
            chat = f"c{self.chance.randrange(CHATS)}"
            ways = Ways(in_group=True, mentioned=True)
            self.said[number] = await one.say(f"say {number}.", sender="ann", chat=chat, ways=ways)

    def on(self, said: Said) -> FakePeople:
        return next(one for one in self.people if one.address("").channel == said.address.channel)

    @property
    def waiting(self) -> int:
        return sum(len(one.platform.waiting()) for one in self.people)


class Run:
    """Gateways, one after the other, over one home."""

    def __init__(self, home: Path, model: FakeOpenAI, folder: Path) -> None:
        self.home, self.folder = home, folder
        home.mkdir()
        self.config = home / "config.toml"
        self.config.write_text(
            'agent.model = "lab/dreamer"\ngateway.debounce = 0.0\ngateway.port = 0\n'
            f'[providers.lab]\nbase_url = "{model.base_url}"\napi_key = "sk-test"\n'
        )

    async def begin(self) -> asyncio.subprocess.Process:
        with (self.home / "stderr.txt").open("ab") as errors:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tests.chaos.gateway_child",
                str(self.config),
                str(self.folder),
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "LIMPET_HOME": str(self.home)},
            )
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), 60)
        assert line == b"ready\n", (self.home / "stderr.txt").read_text()
        return process

    def ask(self, query: str) -> list[tuple[object, ...]]:
        connection = apsw.Connection(str(self.home / "limpet.db"), flags=apsw.SQLITE_OPEN_READONLY)
        connection.set_busy_timeout(10_000)
        try:
            return list(connection.execute(query))
        finally:
            connection.close()

    def open(self) -> int:
        """What is not finished."""
        return sum(
            int(str(self.ask(f"SELECT COUNT(*) FROM {what}")[0][0]))
            for what in (
                "inbox WHERE state IN ('queued', 'claimed')",
                "turns WHERE state IN ('running', 'waiting')",
                "outbox WHERE state IN ('queued', 'attempting') AND kind != 'preview'",
            )
        )


async def chaos(tmp_path: Path) -> tuple[World, Run]:
    chance = random.Random(SEED)
    folder = tmp_path / "platforms"
    for name in TRAITS:
        (folder / name).mkdir(parents=True)
    world = World(folder, chance)
    async with FakeOpenAI(script) as model:
        run = Run(tmp_path / "home", model, folder)
        for _ in range(KILLS):
            process = await run.begin()
            await world.live(chance.uniform(0.05, LATEST))
            process.send_signal(signal.SIGKILL)
            await process.wait()
        process = await run.begin()
        async with asyncio.timeout(180):
            while world.waiting or run.open():
                await asyncio.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 30) == 0
    return world, run


def test_nothing_is_lost_or_done_twice(tmp_path: Path) -> None:
    print(f"LIMPET_CHAOS_SEED={SEED}")
    world, run = asyncio.run(chaos(tmp_path))
    assert len(world.said) > KILLS
    taken = Counter(str(one) for (one,) in run.ask("SELECT channel || event FROM inbox WHERE state = 'done'"))
    assert taken == Counter(f"{one.address.channel}{one.event}" for one in world.said.values())
    assert run.ask("SELECT id FROM inbox WHERE turn = ''") == []
    failed = run.ask("SELECT id, error FROM turns WHERE state != 'done' AND error NOT LIKE 'Interrupted%'")
    assert failed == []
    answered = Counter[int]()
    order: dict[tuple[str, str], list[int]] = defaultdict(list)
    for one in world.people:
        for chat in range(CHATS):
            for text in one.answers(f"c{chat}"):
                if not text.rstrip("x ").endswith(PREVIEW.strip()) and not text.endswith(PREVIEW):
                    numbers = [int(number) for number in re.findall(r"<(\d+)>", text)]
                    answered.update(numbers)
                    order[one.address("").channel, f"c{chat}"] += numbers
    twice = {number: count for number, count in answered.items() if count > 1}
    assert twice == {}
    unsure = "\n".join(
        str(text) for (text,) in run.ask("SELECT text FROM outbox WHERE state IN ('unknown', 'failed', 'expired')")
    )
    given_up = {str(key) for (key,) in run.ask("SELECT turn FROM outbox WHERE text LIKE 'I crashed three times%'")}
    missing = [
        number
        for number, said in world.said.items()
        if number not in answered and f"<{number}>" not in unsure and _turn(run, said) not in given_up
    ]
    assert missing == []
    assert {key: numbers for key, numbers in order.items() if numbers != sorted(numbers)} == {}


def _turn(run: Run, said: Said) -> str:
    ((turn,),) = run.ask(f"SELECT turn FROM inbox WHERE channel = '{said.address.channel}' AND event = '{said.event}'")
    return str(turn)
