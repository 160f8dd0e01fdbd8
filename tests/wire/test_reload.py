"""A conversation read back from the database: a strict service takes it as it took it before."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from limpet.assistant.conversation import Conversation
from limpet.testing.fakes import Call, Reply
from limpet.testing.fakes.server import FakeServer
from limpet.testing.wires import wire_at
from limpet.types.profile import Profile
from tests.assistant.room import KEY, Ledger, home, replies, said
from tests.wire.services import SERVICES

CALLS = (Call("look", '{"word": "one"}'), Call("act", '{"word": "two"}'), Call("look", '{"nonsense": 1}'))
TURN = Reply(thinking="secret", text=("Let me see.",), calls=CALLS)
SCRIPT = [TURN, Reply(text=("first",)), TURN, Reply(text=("second",))]


async def process(folder: Path, server: FakeServer, profile: Profile, text: str) -> list[str]:
    """One process on the home `folder` that says `text`; all it has answered so far."""
    tools = Ledger(folder).tools()
    async with wire_at(server, profile) as model, home(folder, model, tools=tools) as (services, _):
        await Conversation(services, KEY).send(said(text))
        return replies(services)


@pytest.mark.parametrize("wire", SERVICES)
def test_a_restart_between_two_turns(wire: str, tmp_path: Path):
    async def main():
        async with SERVICES[wire].start(SCRIPT) as server:
            await process(tmp_path, server, SERVICES[wire].profile, "one")
            answers = await process(tmp_path, server, SERVICES[wire].profile, "two")
            assert server.refusals == []
            return answers

    assert asyncio.run(main()) == ["first", "second"]
