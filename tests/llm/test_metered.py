from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from limpet.errors import UpstreamError
from limpet.llm.metered import Metered
from limpet.llm.retry import Patience, Retrying
from limpet.testing.scripted import Answer, ScriptedModel
from limpet.testing.wires import ask
from limpet.types.event import Done, TextDelta
from limpet.types.message import Request
from limpet.types.profile import Profile
from limpet.types.usage import NO_USAGE, Usage


class Ledger:
    """A `Meter` that writes down what happens."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.used: list[tuple[Usage, bool]] = []

    async def reserve(
        self, request: Request, profile: Profile, *, at_most: int, expected: Usage = NO_USAGE
    ) -> tuple[str, str]:
        self.lines.append(f"reserve r{len(self.lines)}")
        return f"r{len(self.lines) - 1}", ""

    async def settle(self, reservation: str, usage: Usage, *, state: str, estimated: bool = False) -> None:
        await asyncio.sleep(0)
        self.lines.append(f"settle {reservation} {state}")
        self.used.append((usage, estimated))


def test_a_complete_answer_carries_its_reservation_and_stays_open():
    ledger = Ledger()

    async def run():
        return [event async for event in Metered(ScriptedModel(["hi"]), meter=ledger).stream(ask())]

    done = asyncio.run(run())[-1]
    assert isinstance(done, Done)
    assert done.reservation == "r0"
    assert ledger.lines == ["reserve r0"]


def test_each_attempt_is_counted():
    ledger = Ledger()

    async def run():
        metered = Metered(ScriptedModel([UpstreamError("no"), "hi"]), meter=ledger)
        retrying = Retrying(metered, patience=Patience(pause=0))
        return [event async for event in retrying.stream(ask())]

    asyncio.run(run())
    assert ledger.lines == ["reserve r0", "settle r0 failed", "reserve r2"]


def test_an_error_is_settled_as_failed():
    ledger = Ledger()

    async def run():
        async for _ in Metered(ScriptedModel([UpstreamError("no")]), meter=ledger).stream(ask()):
            pass

    with pytest.raises(UpstreamError):
        asyncio.run(run())
    assert ledger.lines == ["reserve r0", "settle r0 failed"]


def test_a_stop_is_settled_as_failed():
    ledger = Ledger()

    async def run():
        model = Metered(ScriptedModel([Answer(text="x", hang=True)]), meter=ledger)

        async def read():
            async with aclosing(model.stream(ask())) as events:
                async for _ in events:
                    pass

        task = asyncio.create_task(read())
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(run())
    assert ledger.lines == ["reserve r0", "settle r0 failed"]


def test_a_reader_that_leaves_early_is_settled_as_failed():
    ledger = Ledger()

    async def run():
        async with aclosing(Metered(ScriptedModel(["long text"]), meter=ledger).stream(ask())) as events:
            async for event in events:
                assert isinstance(event, TextDelta)
                break

    asyncio.run(run())
    assert ledger.lines == ["reserve r0", "settle r0 failed"]
