"""Stopping: at once, cleanly, and nothing new after it."""

from __future__ import annotations

import asyncio

import pytest

from limpet.agent.queue import Control
from limpet.errors import TurnStopped


def test_work_that_ends_gives_its_result() -> None:
    async def work() -> int:
        return 3

    assert asyncio.run(Control().run(work())) == 3


def test_errors_of_the_work_pass_through() -> None:
    async def work() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        asyncio.run(Control().run(work()))


def test_stop_waits_until_the_work_has_cleaned_up() -> None:
    async def main() -> None:
        control, steps = Control(), list[str]()

        async def work() -> None:
            try:
                control.stop()
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.01)
                steps.append("cleaned")

        with pytest.raises(TurnStopped):
            await control.run(work())
        assert steps == ["cleaned"]

    asyncio.run(main())


def test_after_a_stop_nothing_begins() -> None:
    async def main() -> None:
        control = Control()
        control.stop()

        async def work() -> None:
            raise AssertionError("begun")

        with pytest.raises(TurnStopped):
            await control.run(work())

    asyncio.run(main())


def test_a_cancelled_caller_takes_its_work_along() -> None:
    async def main() -> None:
        ended = asyncio.Event()

        async def work() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        caller = asyncio.create_task(Control().run(work()))
        await asyncio.sleep(0.01)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert ended.is_set()

    asyncio.run(main())
