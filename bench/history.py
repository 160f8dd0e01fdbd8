"""What a turn costs after many others of its session, warm (nothing is compacted), and cold in a process of its own.

The bytes of a long conversation have to be sent whatever one does, so what posting the recorded body costs with the
same client is measured beside it and taken off.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench.fake import Fake, environment, fake, folder
from bench.fake_server import ANSWER
from bench.home import assistant, say, session, settle
from bench.report import Figure, Report, median
from bench.start import Cost, compile_package, program, run
from limpet.assistant.conversation import Conversation
from limpet.llm.http import Http
from limpet.store import entries, sessions
from limpet.store.sql import Connection
from limpet.types.content import Text
from limpet.types.entry import AssistantEntry, UserEntry
from limpet.types.ids import new_id
from limpet.types.message import AssistantMessage, UserMessage

LENGTHS = (10, 100, 1_000, 2_000)
RATIO = 1.3
QUESTION = "And what else is there to know about limpets? "
"""Repeated: 184 characters, so that a turn (with its runtime block and answer) is about 700 bytes of the request."""


def measure(*, quick: bool) -> Report:
    """Sessions of all lengths in one process, measured in turns; medians."""
    lengths = (2, 10) if quick else LENGTHS
    rounds, colds = (2, 1) if quick else (40, 7)
    compile_package()
    with folder() as home, fake() as server:
        warm = asyncio.run(_warm(home, server, lengths, rounds))
        cold = {length: _cold(home, server, length, colds) for length in lengths}
    figures: list[Figure] = []
    for length in lengths:
        figures += _figures(length, warm[length], cold[length], base=_own(warm[lengths[0]]))
    notes = [
        f"medians of {rounds} turns (cold: {colds} processes); ratio: CPU less post, to that of {lengths[0]} turns",
        "post: the same recorded body posted with the same client; cold: `limpet agent -m` on that session",
    ]
    return Report("A turn after a history", figures, notes)


class Samples:
    """Milliseconds of CPU: of turns, and of posting their bodies of `size` bytes."""

    def __init__(self) -> None:
        self.turns: list[float] = []
        self.posts: list[float] = []
        self.size = 0


def _own(samples: Samples) -> float:
    return median(samples.turns) - median(samples.posts)


async def _warm(home: Path, server: Fake, lengths: tuple[int, ...], rounds: int) -> dict[int, Samples]:
    found = {length: Samples() for length in lengths}
    client = Http("openai")
    async with assistant(home, server) as services:
        talks = {length: session(services, f"h{length}") for length in lengths}
        for length, talk in talks.items():
            await say(talk, QUESTION)
            await _fill(talk, length - 3)
            await say(talk, QUESTION)
        settle()
        for talk in talks.values():
            await say(talk, QUESTION)
        order = random.Random(0)
        for _ in range(rounds):
            for length, talk in order.sample(list(talks.items()), len(talks)):  # each leaves other caches behind
                found[length].turns.append(await _cpu(lambda talk=talk: say(talk, QUESTION)))
                body = server.body()
                found[length].size = len(body)
                found[length].posts.append(await _cpu(lambda body=body: _post(client, server, body)))
    await client.close()
    return found


async def _cpu(work: Callable[[], Awaitable[None]]) -> float:
    began = time.process_time()
    await work()
    return (time.process_time() - began) * 1e3


async def _post(client: Http, server: Fake, body: bytes) -> None:
    headers = {"Authorization": f"Bearer {server.key}"}
    async with client.post(f"{server.base_url}/chat/completions", [body], headers=headers) as answer:
        while events := await answer.events():
            if events[-1].data == b"[DONE]":
                break
        await answer.drain()


async def _fill(talk: Conversation, turns: int) -> None:
    """Append `turns` turns to the session in one commit, as they would stand there had they been spoken."""
    services = talk.services
    model = await services.models.get("")
    answer = AssistantMessage(content=(Text("".join(ANSWER)),), producer=model.profile.producer)
    question = UserMessage(content=(Text(QUESTION * 4),), runtime="<runtime>\ntime: long ago\n</runtime>")

    def work(connection: Connection) -> None:
        live = sessions.live(connection, talk.key)
        assert live is not None
        lease = sessions.claim(connection, live.id, owner=services.owner)
        for _ in range(turns):
            for payload in (UserEntry(message=question), AssistantEntry(answer)):
                entries.append(connection, lease, payload, turn=new_id("t"), now=services.clock.now())
        sessions.release(connection, lease)
        services.owner.held.discard(live.id)

    await services.store.write(work)


def _cold(home: Path, server: Fake, length: int, runs: int) -> list[Cost]:
    command = [*program(), "agent", "-m", QUESTION, "--session", f"h{length}"]
    run(command, environment(home, server))
    return [run(command, environment(home, server)) for _ in range(runs)]


def _figures(length: int, samples: Samples, cold: list[Cost], *, base: float) -> list[Figure]:
    name, own = f"{length:,} turns", _own(samples)
    return [
        Figure(name, "CPU", median(samples.turns), "ms"),
        Figure(name, "post", median(samples.posts), "ms"),
        Figure(name, "CPU less post", own, "ms"),
        Figure(name, "ratio", own / base, "x", RATIO if length >= 1_000 else None),
        Figure(name, "body", samples.size / 1e3, "kB"),
        Figure(name, "cold CPU", median([cost.cpu for cost in cold]) * 1e3, "ms"),
        Figure(name, "cold wall", median([cost.wall for cost in cold]) * 1e3, "ms"),
        Figure(name, "cold peak", median([cost.peak for cost in cold]), "MB"),
    ]
