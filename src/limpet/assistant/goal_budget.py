"""The budget of a goal: when it is used up the model is told to stop, and the owner that it was."""

from __future__ import annotations

from msgspec import structs

from limpet.session.aims import Aims
from limpet.session.log import Log
from limpet.types.entry import AssistantEntry, Note, Payload

ORIGIN = "goal budget"
OVER = "The budget of the goal is used up. /goal shows it, /goal budget gives it more, /goal drop ends it."
STOP = (
    "The budget of the goal is used up: {why}. Do not work on it any further until the user says so. "
    "Tell what is done and what is left."
)


def told(aims: Aims, why: str) -> tuple[Payload, ...]:
    """What puts on record that the budget is used up, and tells the model; nothing without a reason."""
    goal = aims.open
    if goal is None or not why:
        return ()
    return (structs.replace(goal, exhausted=True), Note(text=STOP.format(why=why), origin=ORIGIN))


def was_told(log: Log, turn: str) -> bool:
    """Whether the model was told so in this turn, since its last whole answer."""
    for entry in reversed(log.entries):
        payload = entry.payload
        if entry.turn != turn or (isinstance(payload, AssistantEntry) and not payload.message.calls):
            return False
        if isinstance(payload, Note) and payload.origin == ORIGIN:
            return True
    return False
