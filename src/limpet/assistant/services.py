"""What a conversation works with: built once per process by `app`, shared by all conversations of an agent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from msgspec import Struct

from limpet.agent.execute import PathLocks
from limpet.agent.limits import Limits
from limpet.config.schema import PurposeSettings
from limpet.llm.media.studio import Studio
from limpet.llm.purposes import PurposeName, purpose_of, sampling_for
from limpet.store.driver import Store
from limpet.store.nudge import Nudges
from limpet.store.owner import Owner
from limpet.types.entry import Note, PromptEntry
from limpet.types.envelope import InboxRow
from limpet.types.message import Sampling, ToolChoice
from limpet.types.ports import Approvals, Blobs, Clock, Emit, Model, Policy, Redactor, Tool
from limpet.types.profile import Profile


class Models(Protocol):
    """Called for the model of a session; provided by `app` over `llm.choose`."""

    async def get(self, reference: str) -> Model:
        """The model `provider/model`, or with an empty reference the one at hand. Raises `NoModelError`."""
        ...


class Prompting(Protocol):
    """Called for what the model is told; provided by `app` over `prompt`."""

    def snapshot(self, profile: Profile, *, reason: str) -> PromptEntry:
        """The prompt, tools included, as the workspace is now.

        Raises `UserError` when the model's window is too small for any.
        """
        ...

    def changes(self, snapshot: PromptEntry, told: Sequence[Note]) -> list[Note]:
        """A note for each prompt file whose content is no longer what the model was told."""
        ...

    def stale(self, snapshot: PromptEntry) -> str:
        """Why the snapshot has to be made anew (BOOTSTRAP.md went away); empty when it holds."""
        ...

    def runtime(self, row: InboxRow) -> str:
        """The runtime block that goes with an event: time, channel, chat, sender."""
        ...


class Appointed(Struct, frozen=True):
    """The model for a purpose and how to ask it."""

    model: Model
    sampling: Sampling
    tool_choice: ToolChoice


@dataclass(frozen=True, slots=True)
class Services:
    """`workspace` is an absolute path, `tools` are in the order the model is given them."""

    agent: str
    workspace: str
    store: Store
    owner: Owner
    nudges: Nudges
    clock: Clock
    models: Models
    prompting: Prompting
    tools: Sequence[Tool]
    policy: Policy
    approvals: Approvals
    redactor: Redactor
    blobs: Blobs
    limits: Limits
    purposes: PurposeSettings
    studio: Studio
    locks: PathLocks
    emit: Emit

    async def model_for(self, purpose: PurposeName, *, chat: str = "", tools: bool = False) -> Appointed:
        """The model for `purpose`, where none is set that of the chat (`chat` is the session's reference).

        `tools`: some will be offered. Raises `NoModelError`, `ConfigError`.
        """
        found = purpose_of(self.purposes, purpose)
        model = await self.models.get(found.model or chat)
        return Appointed(model, sampling_for(found, model.profile, tools=tools), found.tool_choice)
