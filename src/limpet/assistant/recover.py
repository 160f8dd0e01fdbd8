"""Recovery: what becomes of a turn whose process died, decided from the log and its row alone.

Calls that were never started run now (policy decides again), `pure` and `idempotent` ones run again, `file` ones are
compared, started `unsafe` ones get "outcome unknown": the loop does all of that with what is pending. Here is only
whether it may: not after the third crash, not when it is older than an hour.
"""

from __future__ import annotations

from limpet.store.turns import TurnRow

MAX_ATTEMPTS = 3
TOO_OLD = 60 * 60 * 1000
"""Milliseconds after which an interrupted turn is not resumed: its owner has moved on."""

CRASHED = (
    "I crashed three times while I worked on your last message, so I have given it up. Nothing you wrote is lost: "
    "/retry lets me try once more."
)
OUTDATED = (
    "I was interrupted while I worked on a message of {minutes} minutes ago, and did not go on with it after so long. "
    "/retry lets me do it now."
)


def verdict(turn: TurnRow, *, now: int, decided: int = 0) -> str:
    """Empty when the turn is to be resumed; else the notice with which it ends.

    One that waited for its owner is as old as what he `decided` last (UTC ms).
    """
    if turn.state == "waiting":
        return ""
    if turn.attempts >= MAX_ATTEMPTS:
        return CRASHED
    age = now - max(turn.started, decided)
    return OUTDATED.format(minutes=age // 60_000) if age > TOO_OLD else ""
