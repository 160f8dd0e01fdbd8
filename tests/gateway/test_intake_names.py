"""Names of events that others choose: none makes anybody the owner, or the result of a helper."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec import structs

from limpet.assistant.scope import person_of
from limpet.store import inbox, subagents
from limpet.testing.channel import FakeChannel
from limpet.types.channel import Arrival, Traits
from limpet.types.envelope import Address, InboxRow
from tests.gateway.house import OWNER, house, told

OPEN = structs.replace(OWNER, direct="open")


@pytest.mark.parametrize("name", ["session:1", "helper:1", "session:", "helper:s1.0"])
def test_a_stranger_who_names_his_message_stays_a_stranger(home: Path, name: str) -> None:
    async def main() -> InboxRow:
        fake = FakeChannel(traits=Traits())
        async with house(home, fake, settings=OPEN) as here:
            await fake.until(lambda: bool(here.gateway.links))
            arrival = Arrival(Address("fake", "main", "bob"), name, "bob", "hello")
            await here.gateway.links["fake", "main"].receive(arrival)
            await told(fake, 1, "bob")
            await here.gateway.links["fake", "main"].receive(arrival)
            found = here.agents.state.store.read(
                lambda connection: inbox.find_event(connection, arrival.address, f"outside:{name}")
            )
            assert found is not None
            assert len(here.asked) == 1
            return found

    row = asyncio.run(main())
    assert not person_of(row.inbound).is_owner
    assert not subagents.is_about(row)
