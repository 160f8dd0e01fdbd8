"""A gateway with one channel that only measures. Prints one JSON line.

`python -m bench.gateway_child MODE SESSIONS SECONDS [RATE]`: `burst` says the next thing as soon as the last is
answered, `paced` says RATE things a second, spread over the sessions; `soak` is a burst of SECONDS messages in which
conversations begin anew from time to time, and tells what has grown since they did so for the second time; `idle`
only waits.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from limpet.cli.group import Invocation
from limpet.config.channels import ChannelSettings
from limpet.household import open_gateway
from limpet.types.channel import Arrival, Channel, Desk, MenuEntry, Piece, Traits
from limpet.types.envelope import Address

SETTINGS = ChannelSettings(direct="open", per_minute=10**9)
PLAIN = Traits()
RENEWED = 20
"""Turns of a conversation in a soak, at most: in a short one all begin anew at least five times."""
TEXT = "What is a limpet?"


@dataclass(slots=True)
class LoadChannel:
    """Implements the port `Channel`: says things, and takes the time until they are answered."""

    name: str = "load"
    account: str = "main"
    traits: Traits = PLAIN
    desk: Desk | None = None
    said: dict[str, float] = field(default_factory=dict[str, float])
    latencies: list[float] = field(default_factory=list[float])
    again: bool = False
    renews: int = 0
    number: int = 0

    async def run(self, desk: Desk) -> None:
        self.desk = desk
        desk.up()
        await asyncio.Event().wait()

    async def say(self, chat: str) -> None:
        assert self.desk is not None
        self.number += 1
        self.said.setdefault(chat, time.perf_counter())
        text = "/new" if self.renews and self.number % self.renews == 0 else TEXT
        await self.desk.receive(
            Arrival(Address(self.name, self.account, chat), f"{os.getpid()}-{self.number}", chat, text)
        )

    async def send(self, piece: Piece) -> str:
        chat = piece.address.chat
        if chat in self.said:
            self.latencies.append(time.perf_counter() - self.said.pop(chat))
        if self.again:
            asyncio.get_running_loop().call_soon(lambda: _keep(asyncio.create_task(self.say(chat))))
        return piece.key

    async def close(self) -> None: ...
    async def edit(self, piece: Piece, message: str) -> None: ...
    async def remove(self, address: Address, message: str) -> None: ...
    async def typing(self, address: Address) -> None: ...
    async def react(self, address: Address, message: str, emoji: str) -> None: ...
    async def offer(self, menu: tuple[MenuEntry, ...]) -> None: ...


_tasks: set[asyncio.Task[None]] = set()


def _keep(task: asyncio.Task[None]) -> None:
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


@dataclass(frozen=True, slots=True)
class OneDoor:
    channel: LoadChannel

    def configured(self) -> Mapping[tuple[str, str], ChannelSettings]:
        return {(self.channel.name, self.channel.account): SETTINGS}

    def open(self, kind: str, account: str) -> Channel:
        return self.channel


async def burst(channel: LoadChannel, sessions: int, seconds: float) -> None:
    channel.again = True
    for number in range(sessions):
        await channel.say(f"c{number}")
    await asyncio.sleep(seconds)
    channel.again = False


async def paced(channel: LoadChannel, sessions: int, seconds: float, *, rate: float) -> None:
    began, count = time.perf_counter(), int(rate * seconds)
    for number in range(count):
        await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
        _keep(asyncio.create_task(channel.say(f"c{number % sessions}")))
    async with asyncio.timeout(60):
        while channel.said:
            await asyncio.sleep(0.05)


async def soak(channel: LoadChannel, sessions: int, messages: int) -> dict[str, int]:
    """Bytes, open files and tasks that were added while conversations as long as those before began anew."""
    turns = max(1, min(RENEWED, messages // sessions // 5))
    cycle = turns * sessions
    # Every conversation ends after `turns` messages or so, each at another moment.
    channel.again, channel.renews = True, turns if turns % 2 else turns + 1
    for number in range(sessions):
        await channel.say(f"c{number}")
    while channel.number < 2 * cycle:
        await asyncio.sleep(0.05)
    before = _held()
    while channel.number < messages:
        await asyncio.sleep(0.05)
    after = _held()
    channel.again = False
    await asyncio.sleep(1.0)
    return {name: after[name] - before[name] for name in before}


def _held() -> dict[str, int]:
    gc.collect()
    files = len(os.listdir(f"/proc/{os.getpid()}/fd"))
    return {"bytes": resident(), "files": files, "tasks": len(asyncio.all_tasks())}


async def main(mode: str, sessions: int, seconds: float, rate: float) -> None:
    channel, stop = LoadChannel(), asyncio.Event()
    async with open_gateway(Invocation(), lambda agents, home: OneDoor(channel)) as gateway:
        running = asyncio.create_task(gateway.run(stop))
        while channel.desk is None:
            await asyncio.sleep(0.01)
        for number in range(sessions if mode != "idle" else 1):
            await channel.say(f"c{number}")
        async with asyncio.timeout(120):
            while len(channel.latencies) < (sessions if mode != "idle" else 1):
                await asyncio.sleep(0.01)
        await asyncio.sleep(2.0)
        channel.latencies.clear()
        grown = dict[str, int]()
        began, cpu = time.perf_counter(), time.process_time()
        if mode == "idle":
            await asyncio.sleep(seconds)
        elif mode == "soak":
            grown = await soak(channel, sessions, int(seconds))
        elif mode == "burst":
            await burst(channel, sessions, seconds)
        else:
            await paced(channel, sessions, seconds, rate=rate)
        wall, used = time.perf_counter() - began, time.process_time() - cpu
        taken = sorted(channel.latencies)
        print(
            json.dumps(
                {
                    "turns": len(taken),
                    "wall": wall,
                    "cpu": used,
                    "p50": taken[len(taken) // 2] if taken else 0.0,
                    "p95": taken[int(len(taken) * 0.95)] if taken else 0.0,
                    "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
                    "rss": resident(),
                    "grown": grown,
                }
            ),
            flush=True,
        )
        stop.set()
        await running


def resident() -> int:
    """Bytes of this process that are in memory now."""
    with open(f"/proc/{os.getpid()}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float([*sys.argv, "0"][4])))
