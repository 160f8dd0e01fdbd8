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
    "session_started",
    "session_ended",
    "compacted",
    "gateway_started",
    "gateway_stopped",
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
    """A message is about to leave over a channel. `session` is empty for what Limpet says by itself."""

    session: str
    channel: str
    chat: str
    text: str


class SessionBegan(Struct, frozen=True, tag_field="point", tag="session_started"):
    """The first turn of a conversation begins. `key` is the session key."""

    session: str
    key: str


class SessionEnded(Struct, frozen=True, tag_field="point", tag="session_ended"):
    """A conversation is over, its notes are about to be written. `reason` says why: `new`, `idle`, `daily` …"""

    session: str
    key: str
    reason: str


class Compacted(Struct, frozen=True, tag_field="point", tag="compacted"):
    """The older part of a conversation was shortened. `before` and `after` are tokens of the next request."""

    session: str
    key: str
    before: int
    after: int


class GatewayBegan(Struct, frozen=True, tag_field="point", tag="gateway_started"):
    """`channels` are the kinds that are switched on."""

    channels: tuple[str, ...] = ()


class GatewayEnded(Struct, frozen=True, tag_field="point", tag="gateway_stopped"):
    """The gateway has drained."""


HookEvent = (
    MessageReceived
    | TurnBegan
    | RequestReady
    | ToolWanted
    | ToolFinished
    | TurnFinished
    | MessageSending
    | SessionBegan
    | SessionEnded
    | Compacted
    | GatewayBegan
    | GatewayEnded
)


class Hook(Protocol):
    """One hook: a function of a plug-in, or a command of the configuration."""

    @property
    def name(self) -> str:
        """For people: who it is."""
        ...

    @property
    def points(self) -> frozenset[HookPoint]: ...

    @property
    def timeout(self) -> float:
        """Seconds it may take, 0 = as long as any."""
        ...

    async def run(self, event: HookEvent) -> str:
        """Before a tool: why the call must not run, empty when it may. At other points what it says does not count."""
        ...
