"""Events: what watchers see while a turn runs. A view of the turn, never its truth: losing them loses nothing."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from limpet.types.entry import PlanStep
from limpet.types.message import AssistantMessage
from limpet.types.usage import Usage


class TextDelta(Struct, frozen=True, tag_field="event", tag="text"):
    text: str


class ThinkingDelta(Struct, frozen=True, tag_field="event", tag="thinking"):
    text: str


class AnswerReset(Struct, frozen=True, tag_field="event", tag="reset"):
    """What was shown of the current answer does not count: it is being asked for again, because of `reason`."""

    reason: str


class Done(Struct, frozen=True, tag_field="event", tag="answer"):
    """The complete answer, always the last event of a model's stream. `reservation` names its usage row."""

    message: AssistantMessage
    reservation: str = ""


class TurnStarted(Struct, frozen=True, tag_field="event", tag="turn_started"):
    session: str
    turn: str
    attempt: int = 1


class ToolBegan(Struct, frozen=True, tag_field="event", tag="tool_began"):
    """A call is about to run. `call` is its name inside Limpet: assistant entry, a dot, the index."""

    call: str
    name: str
    arguments: str


class ToolProgress(Struct, frozen=True, tag_field="event", tag="tool_progress"):
    call: str
    text: str


class ToolEnded(Struct, frozen=True, tag_field="event", tag="tool_ended"):
    call: str
    name: str
    text: str
    is_error: bool
    duration: int = 0


class Notice(Struct, frozen=True, tag_field="event", tag="notice"):
    """Something the owner should know: a retry, a limit near, a fallback."""

    text: str
    level: Literal["info", "warning"] = "info"


class AimsChanged(Struct, frozen=True, tag_field="event", tag="aims"):
    """The goal (empty: none is open) and the plan of a session, one of which has just changed."""

    session: str
    goal: str
    plan: tuple[PlanStep, ...]


class TurnEnded(Struct, frozen=True, tag_field="event", tag="turn_ended"):
    session: str
    turn: str
    state: Literal["done", "failed", "cancelled", "interrupted"]
    text: str
    usage: Usage = Usage()
    error: str = ""


ModelEvent = TextDelta | ThinkingDelta | AnswerReset | Notice | Done
Event = (
    TextDelta
    | ThinkingDelta
    | AnswerReset
    | TurnStarted
    | ToolBegan
    | ToolProgress
    | ToolEnded
    | Notice
    | AimsChanged
    | TurnEnded
)
