"""The door: what a command asks for when it needs the assistant, and who opens it.

Commands stand below the composition root, so they are given its opener by name (`Invocation.opener`).
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeGuard

from msgspec import Struct

from limpet.assistant.services import Services
from limpet.cli.group import Invocation, load
from limpet.llm.metered import Countable
from limpet.types.approval import Approval, Reply
from limpet.types.ports import Asker, Emit, Tool


class Entrance(Struct, frozen=True):
    """`model` is a reference (`provider/model`) or empty; `conversation` is False for one turn (no BOOTSTRAP).

    `announce` says which model was chosen when the owner did not name one. `stays`: the process is there for long, and
    watches the files of the memory. A program that embeds the agent may bring its own model (`given`) and `tools`.
    """

    emit: Emit
    approvals: Asker
    model: str = ""
    agent: str = "main"
    conversation: bool = True
    announce: bool = True
    stays: bool = False
    given: Countable | None = None
    tools: tuple[Tool, ...] = ()

    @property
    def announces(self) -> bool:
        """Whether the model that is used unasked is said."""
        return self.announce and not self.model


class Opener(Protocol):
    """Builds the services of this process and ends them again; provided by `wiring`."""

    def __call__(self, invocation: Invocation, entrance: Entrance) -> AbstractAsyncContextManager[Services]: ...


class Nobody:
    """Implements the port `Asker` where there is nobody to ask."""

    can_ask = False

    async def ask(self, approval: Approval) -> Reply | None:
        return None


def opener(invocation: Invocation) -> Opener:
    """The opener that the composition root has named."""
    found = load(invocation.opener)
    if not _is_opener(found):
        raise TypeError(f"{invocation.opener} is no opener")
    return found


def _is_opener(value: object) -> TypeGuard[Opener]:
    return callable(value)
