"""A home with real parts (SQLite file, owner lock, nudges) and a scripted model, for tests of the assistant."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from limpet.agent.execute import PathLocks
from limpet.agent.limits import Limits
from limpet.assistant.services import Services
from limpet.assistant.weigh import Weights
from limpet.config.schema import PurposeSettings
from limpet.errors import NoModelError
from limpet.llm.media.desk import Desk
from limpet.llm.media.studio import Studio
from limpet.memory.notes import WorkspaceNotes
from limpet.store.blobs import BlobStore
from limpet.store.driver import Store, StoreSettings
from limpet.store.nudge import Nudges
from limpet.store.owner import Owner
from limpet.testing.clock import FakeClock
from limpet.testing.trace import Trace
from limpet.toolkit.schema import tool
from limpet.types.approval import Approval, Reply
from limpet.types.entry import Note, PromptEntry, Section
from limpet.types.envelope import Address, Inbound, InboxRow
from limpet.types.ids import new_id
from limpet.types.ports import EVERYWHERE, BoundCall, Model, Scope, Tool, ToolContext, Verdict
from limpet.types.profile import Profile
from limpet.types.tool import FileIntent, ToolResult, text_result
from limpet.undo.copies import Copies
from limpet.undo.keeper import Keeper

KEY = "agent:main:main"
HERE = Address(channel="cli", chat=KEY)


class OneModel:
    """`Models` that has only this one, and `others` by their references."""

    def __init__(self, model: Model, others: Mapping[str, Model]) -> None:
        self.model = model
        self.others = others

    async def get(self, reference: str) -> Model:
        return self.others.get(reference, self.model)


async def no_desk(reference: str) -> Desk:
    raise NoModelError(f"There is no {reference} here.")


class PlainPrompting:
    """`Prompting` with a fixed prompt; `notes` are what it says has changed, `shown` what it shows of memory."""

    def __init__(self, tools: Sequence[Tool] = (), *, shown: str = "") -> None:
        self.tools = tools
        self.shown = shown
        self.notes: list[Note] = []

    def snapshot(self, profile: Profile, *, reason: str, before: str = "", key: str = "") -> PromptEntry:
        return PromptEntry(
            sections=(Section("identity", "You are Limpet."), *((Section("archive", before),) if before else ())),
            tools=tuple(tool.spec for tool in self.tools),
            model=profile.reference,
            reason=reason,
        )

    def memory(self, profile: Profile, *, key: str = "") -> str:
        return self.shown

    def changes(self, snapshot: PromptEntry, told: Sequence[Note]) -> list[Note]:
        return [note for note in self.notes if note not in told]

    def folders(self, paths: Iterable[str], told: Sequence[Note]) -> list[Note]:
        return []

    def stale(self, snapshot: PromptEntry) -> str:
        return ""

    def runtime(self, row: InboxRow, facts: Sequence[str] = ()) -> str:
        return f"<runtime>{'; '.join(['now', *facts])}</runtime>"


class Allow:
    def decide(self, tool: Tool, call: BoundCall, scope: Scope = EVERYWHERE) -> Verdict:
        return Verdict("allow")


class Nobody:
    can_ask = False

    async def ask(self, approval: Approval) -> Reply | None:
        return None


class NoSecrets:
    def redact(self, text: str) -> str:
        return text


class Ledger:
    """Tools with each kind of effect; `ran` lists what they did, in order."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ran: list[str] = []

    def tools(self) -> tuple[Tool, ...]:
        @tool(effect="unsafe")
        async def act(context: ToolContext, word: Annotated[str, "what"]) -> ToolResult:
            """Do something to the world."""
            self.ran.append(word)
            with open(self.folder / "side.txt", "a", encoding="utf-8") as file:
                file.write(f"{word}\n")
            return text_result(f"did {word}")

        @tool(effect="pure")
        async def look(context: ToolContext, word: Annotated[str, "what"] = "") -> ToolResult:
            """Look at something."""
            self.ran.append(word)
            return text_result(f"saw {word}")

        @tool(effect="file", writes=("path",))
        async def put(
            context: ToolContext, path: Annotated[str, "file"], text: Annotated[str, "content"]
        ) -> ToolResult:
            """Write a file."""
            target = self.folder / path
            before = hashlib.sha256(target.read_bytes()).hexdigest() if target.exists() else ""
            after = hashlib.sha256(text.encode()).hexdigest()
            await context.starting(FileIntent(path=str(target), before=before, after=after))
            self.ran.append(path)
            (self.folder / f"{path}.new").write_text(text, encoding="utf-8")
            os.rename(self.folder / f"{path}.new", target)
            return text_result(f"wrote {path}")

        return (act, look, put)


@asynccontextmanager
async def home(
    folder: Path,
    model: Model,
    *,
    tools: Sequence[Tool] = (),
    limits: Limits | None = None,
    store: StoreSettings | None = None,
    purposes: PurposeSettings | None = None,
    others: Mapping[str, Model] | None = None,
    undo: bool = False,
) -> AsyncGenerator[tuple[Services, Trace]]:
    """Services over the home `folder`, as one process has them. With `undo` the workspace is a folder of its own."""
    workspace = folder / "workspace" if undo else folder
    workspace.mkdir(exist_ok=True)
    owner = Owner(str(folder / "run"))
    database = Store.open(str(folder / "limpet.db"), process=owner.name, settings=store or StoreSettings())
    nudges = Nudges(owner, database)
    trace = Trace()
    keeper = Keeper(Copies(str(folder / "undo" / "copies.db")), str(workspace), clock=FakeClock())
    services = Services(
        agent="main",
        workspace=str(workspace),
        store=database,
        owner=owner,
        nudges=nudges,
        clock=FakeClock(),
        models=OneModel(model, others or {}),
        prompting=PlainPrompting(tools),
        notes=WorkspaceNotes(str(workspace), lambda at: datetime.fromtimestamp(at / 1000, UTC)),
        weights=Weights(),
        tools=tools,
        policy=Allow(),
        approvals=Nobody(),
        redactor=NoSecrets(),
        blobs=BlobStore(str(folder / "blobs"), database),
        limits=limits or Limits(),
        purposes=purposes or PurposeSettings(),
        studio=Studio(PurposeSettings(), no_desk),
        locks=PathLocks(),
        emit=trace.emit,
        undo=keeper if undo else None,
    )
    try:
        yield services, trace
    finally:
        nudges.close()
        keeper.close()
        await database.close()
        owner.close()


def said(text: str, *, event: str = "") -> Inbound:
    return Inbound(address=HERE, event=event or new_id("m"), text=text)


def replies(services: Services) -> list[str]:
    """Everything in the outbox, in order."""
    rows = services.store.read(lambda connection: connection.execute("SELECT text FROM outbox ORDER BY id").fetchall())
    return [str(text) for (text,) in rows]
