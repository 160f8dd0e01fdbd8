"""The assistant on a real wire: a home with the built-in tools, and a model at a fake server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from limpet.assistant.conversation import Conversation
from limpet.assistant.services import Services
from limpet.llm.build import build
from limpet.llm.choose import Choice
from limpet.llm.http import Deadlines
from limpet.llm.profiles import profile_of
from limpet.llm.retry import Patience
from limpet.sandbox.run import Sandbox
from limpet.store import entries, sessions
from limpet.testing.fakes.server import FakeServer
from limpet.testing.trace import Trace
from limpet.tools.builtin import builtin
from limpet.types.entry import ToolResultEntry
from limpet.types.ports import Tool
from limpet.types.profile import Wire
from tests.assistant.room import KEY, home, replies, said

QUICK = Deadlines(connect=5, first_byte=0.1, idle=0.1, total=5)
"""Five times that at a fake, which counts as a local server."""


class Stage:
    """What a case looks at: the main session of a home, as a person has it."""

    def __init__(self, services: Services, trace: Trace) -> None:
        self.services = services
        self.trace = trace
        self.talk = Conversation(services, KEY)
        self.workspace = Path(services.workspace)

    async def say(self, text: str) -> None:
        await self.talk.send(said(text))

    @property
    def replies(self) -> list[str]:
        return replies(self.services)

    def results(self) -> list[str]:
        """The texts of all tool results, in the order of the log."""
        session = self.services.store.read(lambda connection: sessions.live(connection, KEY))
        assert session is not None
        log = self.services.store.read(lambda connection: entries.load(connection, session.id))
        return [entry.payload.result.text for entry in log if isinstance(entry.payload, ToolResultEntry)]


@asynccontextmanager
async def stage(
    folder: Path,
    server: FakeServer,
    reference: str = "openai/gpt-4o",
    *,
    tools: Sequence[Tool] | None = None,
    deadlines: Deadlines | None = None,
    window: int = 0,
    wire: Wire | None = None,
) -> AsyncGenerator[Stage]:
    """One process on the home `folder` with the model `reference` at `server`; opening it again is a restart."""
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    provider, _, name = reference.partition("/")
    choice = Choice(
        profile=profile_of(provider, name, base_url=server.base_url, window=window, wire=wire),
        key=server.key,
        reason="",
    )
    model = build(choice, deadlines=deadlines or Deadlines(), patience=Patience(pause=0.01))
    async with Sandbox() as sandbox:
        used = builtin(sandbox=sandbox) if tools is None else tools
        async with home(folder, model, tools=used) as (services, trace):
            try:
                yield Stage(replace(services, workspace=str(workspace)), trace)
            finally:
                await model.close()
