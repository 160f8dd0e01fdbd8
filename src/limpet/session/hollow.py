"""What is left of a payload when its content is erased: so much that the log is still one, and no more."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Raw

from limpet.types.content import AssistantBlock, Image, Opaque, Text, ToolCall
from limpet.types.entry import (
    AssistantEntry,
    Compaction,
    Flush,
    GoalEntry,
    Label,
    Note,
    Payload,
    PlanEntry,
    PromptEntry,
    Rollback,
    ToolResultEntry,
    ToolStarted,
    UndoPoint,
    UserEntry,
)
from limpet.types.message import AssistantMessage, UserMessage
from limpet.types.tool import ToolResult

ERASED = "[erased by the owner]"
_GONE = (Text(ERASED),)


def hollow(payload: Payload | Opaque) -> Payload | Opaque | None:
    """`payload` without its content; None when it has none.

    Calls and results stay what they are to each other. A summary stands for nothing any more, so that what it covered
    is seen again; a prompt is made anew with the next message.
    """
    match payload:
        case UserEntry(inbox=inbox):
            return UserEntry(UserMessage(_GONE), inbox=inbox)
        case AssistantEntry(message=message):
            return AssistantEntry(
                AssistantMessage(
                    tuple(_calls(message)), producer=message.producer, stop=message.stop, usage=message.usage
                )
            )
        case ToolStarted():
            return ToolStarted(payload.assistant, payload.index, payload.name, effect=payload.effect)
        case ToolResultEntry(result=result):
            left = ToolResult(_GONE, is_error=result.is_error, ends_turn=result.ends_turn, trust=result.trust)
            return ToolResultEntry(payload.assistant, payload.index, payload.name, left)
        case Opaque():
            return Opaque(Raw(b'{"kind":"erased"}'))
        case _:
            return _hollow_fact(payload)


def _hollow_fact(payload: Payload) -> Payload | None:
    """The same for what Limpet itself put into the log."""
    match payload:
        case Compaction():
            return Compaction(summary="", first_kept="")
        case Flush(upto=upto):
            return Flush(upto=upto)
        case PromptEntry(tier=tier, mode=mode):
            return PromptEntry(sections=(), tools=(), tier=tier, mode=mode, reason="erased")
        case Note(origin=origin):
            return Note(ERASED, origin=origin)
        case Label(target=target):
            return Label(target=target, label=ERASED)
        case GoalEntry():
            return GoalEntry(ERASED, state="dropped")
        case PlanEntry():
            return PlanEntry()
        case UndoPoint(refused=refused):
            return UndoPoint(files=payload.files, size=payload.size, refused=refused)
        case Rollback():
            return Rollback(turn=payload.turn, mark=payload.mark, row=payload.row, count=payload.count)
        case _:
            return None


def blobs_of(payload: Payload | Opaque) -> set[str]:
    """The blobs (by hash) that a payload refers to."""
    match payload:
        case UserEntry(message=message):
            return _pictures(message.content)
        case ToolResultEntry(result=result):
            return _pictures(result.content) | ({result.details.spill} if result.details.spill else set[str]())
        case _:
            return set()


def _calls(message: AssistantMessage) -> Iterable[AssistantBlock]:
    if message.text.strip() or not message.calls:
        yield Text(ERASED)
    for call in message.calls:
        yield ToolCall(id=call.id, name=call.name, arguments="{}")


def _pictures(blocks: Iterable[object]) -> set[str]:
    return {block.blob for block in blocks if isinstance(block, Image)}
