"""Delivery to terminals: one answer for several of them is seen once where they have become one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from limpet.assistant.services import Services
from limpet.cli.deliver import deliver
from limpet.store import outbox
from limpet.testing.scripted import ScriptedModel
from limpet.types.envelope import Address, OutboxRow, Part
from tests.assistant.room import KEY, home


async def answer_to(services: Services, *threads: str) -> None:
    """One answer of a turn, queued for the terminals of several processes."""
    for number, thread in enumerate(threads):
        part = Part(address=Address(channel="cli", chat=KEY, thread=thread), text="done", key=f"p{number}")
        await services.store.write(lambda c, part=part: outbox.queue(c, part, session="s", turn="t1", now=0))


def states(services: Services) -> list[str]:
    rows = services.store.read(lambda c: c.execute("SELECT state FROM outbox ORDER BY id").fetchall())
    return [str(state) for (state,) in rows]


@pytest.mark.parametrize("mine", [True, False])
def test_an_answer_to_two_terminals_that_are_gone_is_shown_once(tmp_path: Path, mine: bool) -> None:
    async def main() -> None:
        async with home(tmp_path, ScriptedModel([])) as (services, _):
            here = Address(channel="cli", chat=KEY, thread=services.owner.name)
            await answer_to(services, "1-dead", here.thread if mine else "2-dead")
            shown: list[OutboxRow] = []
            await deliver(services, here, shown.append)
            assert [row.text for row in shown] == ["done"]
            assert sorted(states(services)) == ["expired", "sent"]

    asyncio.run(main())


def test_killed_while_showing_neither_copy_is_shown_again(tmp_path: Path) -> None:
    class Killed(BaseException):
        pass

    def die(row: OutboxRow) -> None:
        raise Killed

    async def killed() -> None:
        async with home(tmp_path, ScriptedModel([])) as (services, _):
            await answer_to(services, "1-dead", "2-dead")
            await deliver(services, Address(channel="cli", chat=KEY, thread=services.owner.name), die)

    async def restarted() -> None:
        async with home(tmp_path, ScriptedModel([])) as (services, trace):
            shown = await deliver(services, Address(channel="cli", chat=KEY, thread=services.owner.name), die)
            assert shown == []
            assert sorted(states(services)) == ["expired", "unknown"]
            assert "may not have been shown" in trace.text

    with pytest.raises(Killed):
        asyncio.run(killed())
    asyncio.run(restarted())
