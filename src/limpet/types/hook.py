"""Hooks: the points of a turn at which other code looks in, and what it is told there. Each event is plain JSON."""

from __future__ import annotations

from typing import Literal, Protocol

from msgspec import Struct

HookPoint = Literal[
    "message_received",
    "turn_started",
    "before_request",
    "before_tool",
    "after_tool",
    "turn_ended",
    "message_sending",
]


class MessageReceived(Struct, frozen=True, tag_field="point", tag="message_received"):
    """A message is in the inbox, its turn not begun. `session` is the key of the conversation."""

    session: str
    channel: str
    sender: str
    text: str


class TurnBegan(Struct, frozen=True, tag_field="point", tag="turn_started"):
    """`attempt` is above 1 where a turn goes on after an interruption."""

    session: str
    turn: str
    attempt: int = 1


class RequestReady(Struct, frozen=True, tag_field="point", tag="before_request"):
    """A request is about to go to a model; its sizes, not its words, and nothing of it can be changed."""

    session: str
    turn: str
    model: str
    messages: int
    tools: int


class ToolWanted(Struct, frozen=True, tag_field="point", tag="before_tool"):
    """The model wants to call a tool. `arguments` is JSON text; a hook may say no, and change nothing."""

    session: str
    turn: str
    call: str
    name: str
    arguments: str


class ToolFinished(Struct, frozen=True, tag_field="point", tag="after_tool"):
    """A call has its result, which is on record. `duration` is milliseconds."""

    session: str
    turn: str
    call: str
    name: str
    text: str
    is_error: bool
    duration: int = 0


class TurnFinished(Struct, frozen=True, tag_field="point", tag="turn_ended"):
    session: str
    turn: str
    state: str
    text: str
    error: str = ""


class MessageSending(Struct, frozen=True, tag_field="point", tag="message_sending"):
    """A message is about to leave over a channel."""

    session: str
    channel: str
    text: str


HookEvent = MessageReceived | TurnBegan | RequestReady | ToolWanted | ToolFinished | TurnFinished | MessageSending


class Hook(Protocol):
    """One hook: a function of a plug-in, later a command of the configuration."""

    @property
    def name(self) -> str:
        """For people: who it is."""
        ...

    @property
    def points(self) -> frozenset[HookPoint]: ...

    async def run(self, event: HookEvent) -> str:
        """Before a tool: why the call must not run, empty when it may. At other points what it says does not count."""
        ...
