"""A real home, opened in this process as the program opens it."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.fake import Fake, environment
from limpet.assistant.conversation import Conversation
from limpet.assistant.services import Services
from limpet.cli.door import Entrance, Nobody
from limpet.cli.group import Invocation
from limpet.prompt.bootstrap import SETTLED
from limpet.session import keys
from limpet.types.envelope import Address, Inbound
from limpet.types.event import Event
from limpet.types.ids import new_id
from limpet.types.ports import Emit
from limpet.wiring import open_assistant


def _unseen(event: Event) -> None:
    pass


@asynccontextmanager
async def assistant(
    home: Path, server: Fake, *, conversation: bool = True, emit: Emit = _unseen, **more: str
) -> AsyncGenerator[Services]:
    """The services of a process that works in `home`. It takes the whole environment of this one over."""
    home.mkdir(exist_ok=True)
    os.environ.clear()
    os.environ.update(environment(home, server, **more))
    entrance = Entrance(emit=emit, approvals=Nobody(), conversation=conversation, announce=False)
    async with open_assistant(Invocation(), entrance) as services:
        yield services


def settle() -> None:
    """Wait until the files of a new workspace count as old: just written ones are read anew in each turn."""
    time.sleep(SETTLED / 1e9 + 0.1)


def session(services: Services, name: str) -> Conversation:
    """The session `name`, as `limpet agent --session NAME` has it."""
    return Conversation(services, keys.cli(services.agent, name))


async def say(conversation: Conversation, text: str) -> None:
    """One turn, up to its committed reply. Raises `RuntimeError` when it does not end well."""
    address = Address(channel="cli", chat=conversation.key)
    row = await conversation.send(Inbound(address=address, event=new_id("bench-"), text=text))
    if row.state != "done":
        raise RuntimeError(f"the event ended as {row.state}")
