"""Concrete inputs of the field on memory: what the flush writes, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC
from pathlib import Path

from limpet.assistant import ending
from limpet.assistant.services import Rules
from limpet.session.resets import Reset, due
from limpet.testing.clock import FakeClock
from limpet.testing.fakes import FakeOpenAI, Reply, Seen
from tests.assistant.room import KEY
from tests.cases.stage import Stage, stage
from tests.cases.test_session_context import is_digest, notes

WINDOW = 8_000


class Service:
    """Answers briefly, and a digest with the next note of its own; `digests` are the requests for one, in order."""

    def __init__(self, *, overflow: bool = False) -> None:
        self.digests: list[str] = []
        self.overflow = overflow

    def __call__(self, seen: Seen) -> Reply:
        text = seen.raw.decode()
        if is_digest(seen):
            self.digests.append(text)
            note = f"<notes>\n- B{len(self.digests)}\n</notes><summary>All about tales.</summary>"
            return Reply(text=(note,))
        if self.overflow and len(text) > 40_000:
            error = {"error": {"message": "Too long.", "code": "context_length_exceeded"}}
            return Reply(status=400, body=error)
        return Reply(text=("tale " * 300,), usage=(0, 0))


def flushed_twice(
    folder: Path, service: Service, trigger: Callable[[Stage, int], Awaitable[None]], *, window: int = WINDOW
) -> None:
    """Do what triggers a flush twice; what went is in the request, and the day's notes only grow."""

    async def main() -> None:
        async with FakeOpenAI(service) as server, stage(folder, server, window=window) as one:
            file = folder / one.services.notes.file(one.services.clock.now(), "owner")
            file.parent.mkdir()
            file.write_text("A\n")
            for number in (1, 2):
                await trigger(one, number)
                assert len(service.digests) >= number, "on every occasion, not on every second"
                assert any(f"story {number}" in digest for digest in service.digests)
                text = notes(folder)
                assert text.startswith("A\n")
                assert all(f"- B{made}" in text for made in range(1, len(service.digests) + 1))

    asyncio.run(main())


def test_c31_before_a_proactive_compaction(tmp_path: Path) -> None:
    service = Service()

    async def trigger(one: Stage, number: int) -> None:
        before = len(service.digests)
        await one.say(f"story {number}")
        while len(service.digests) == before:
            await one.say("go on " * 100)

    flushed_twice(tmp_path, service, trigger)


def test_c31_on_overflow(tmp_path: Path) -> None:
    service = Service(overflow=True)

    async def trigger(one: Stage, number: int) -> None:
        before = len(service.digests)
        await one.say(f"story {number}")
        while len(service.digests) == before:
            await one.say("go on " * 1_000)

    flushed_twice(tmp_path, service, trigger, window=100_000)


def test_c31_on_new(tmp_path: Path) -> None:
    async def trigger(one: Stage, number: int) -> None:
        await one.say(f"story {number}")
        await one.say("/new")
        assert await ending.close_ended(one.services, KEY) == 1

    flushed_twice(tmp_path, Service(), trigger)


def test_c31_on_a_daily_reset(tmp_path: Path) -> None:
    async def trigger(one: Stage, number: int) -> None:
        clock = one.services.clock
        assert isinstance(clock, FakeClock)

        def resets(key: str, last: int, now: int) -> str:
            return due(Reset(daily=4), last, now, zone=UTC)

        one.talk.services = replace(one.services, rules=Rules(resets=resets))
        await one.say(f"story {number}")
        clock.advance(24 * 3600)
        await one.say("good morning")
        assert await ending.close_ended(one.services, KEY) == 1

    flushed_twice(tmp_path, Service(), trigger)
