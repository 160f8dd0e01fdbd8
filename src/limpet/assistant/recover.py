"""Recovery: what becomes of a turn whose process died, decided from the log and its row alone.

Calls that were never started run now (policy decides again), `pure` and `idempotent` ones run again, `file` ones are
compared, started `unsafe` ones get "outcome unknown": the loop does all of that with what is pending. Here is only
whether it may: not after the third crash, not when it is older than an hour.
"""

from __future__ import annotations

from limpet.store.turns import TurnRow

MAX_ATTEMPTS = 3
MAX_UNASKED = 2
"""… of a run of a job, which is not tried again after its second crash (DESIGN 4)."""
TOO_OLD = 60 * 60 * 1000
"""Milliseconds after which an interrupted turn is not resumed: its owner has moved on."""

CRASHED = (
    "I crashed three times while I worked on your last message, so I have given it up. Nothing you wrote is lost: "
    "/retry lets me try once more."
)
CRASHED_UNASKED = "I crashed twice in this run, and have given it up."
OUTDATED = (
    "I was interrupted while I worked on a message of {minutes} minutes ago, and did not go on with it after so long. "
    "/retry lets me do it now."
)


def verdict(turn: TurnRow, *, now: int, decided: int = 0, most: int = MAX_ATTEMPTS) -> str:
    """Empty when the turn is to be resumed; else the notice with which it ends. `most` is how often it may crash.

    One that waited for its owner is as old as what he `decided` last (UTC ms).
    """
    if turn.state == "waiting":
        return ""
    if turn.attempts >= most:
        return CRASHED if most == MAX_ATTEMPTS else CRASHED_UNASKED
    age = now - max(turn.started, decided)
    return OUTDATED.format(minutes=age // 60_000) if age > TOO_OLD else ""
