"""Approvals: what waits for the owner's word, and what that word was. All times are UTC milliseconds."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Kind = Literal["call", "question"]
Word = Literal["once", "always", "deny", "answer"]
"""What an owner can say: to a call yes for this once, yes to exactly this plan from now on, or no; or an answer."""
Outcome = Literal["", "once", "always", "deny", "answer", "expired", "ended"]
"""How an approval stands: open, decided, too late, or its turn was over before anybody decided."""


class Wanted(Struct, frozen=True):
    """What a call wants of the owner: a yes to `plan` (one exact line), or an answer to the question in it.

    `call` names the call, `hash` is the SHA-256 over tool, arguments, place and workspace. `choices` are offered
    answers; with `only_choices` no other is taken.
    """

    call: str
    tool: str
    plan: str
    hash: str
    reason: str = ""
    kind: Kind = "call"
    choices: tuple[str, ...] = ()
    only_choices: bool = False


class Ruling(Struct, frozen=True):
    """What became of it. `text` is the answer to a question, or the beginning of a sentence that says why not."""

    allowed: bool
    text: str = ""


class Approval(Struct, frozen=True):
    """A stored one. `owner` names who besides this machine's terminal may decide, `process` who shows it right now.

    `text` is an answer; `by` is who decided. `revoked` (0 = never) ends an `always`.
    """

    id: str
    session: str
    key: str
    turn: str
    agent: str
    wanted: Wanted
    owner: str
    process: str
    created: int
    expires: int
    outcome: Outcome
    text: str
    by: str
    at: int
    revoked: int


class Reply(Struct, frozen=True):
    """What a person answered; `text` goes with the word `answer`."""

    word: Word
    text: str = ""
