"""What stands in for the covered part of a log: a summary, completed by what code knows for certain."""

from __future__ import annotations

from collections.abc import Sequence

from limpet.session.cut import files_touched
from limpet.session.export import plain
from limpet.session.room import CHARACTERS
from limpet.toolkit.truncate import ends
from limpet.types.entry import Compaction, Entry, UserEntry

MOST_FILES = 60
"""Files of each list that a summary names, the newest ones."""
SAID = 12
"""Messages of people that a summary made without a model quotes, the newest ones, in `SAID_LENGTH` characters each."""
SAID_LENGTH = 240


def stand_in(
    summary: str, covered: Sequence[Entry], kept: Sequence[Entry], *, before: Compaction | None, tokens: int
) -> Compaction:
    """The compaction that lets `summary` stand for `covered`, `kept` being what follows and `before` the one until now.

    It names the files of both, and quotes the message that is being worked on when that is among the covered ones,
    in at most `tokens`.
    """
    read, changed = files_touched(covered)
    if before is not None:
        changed = list(dict.fromkeys((*before.changed, *changed)))
        read = [path for path in dict.fromkeys((*before.read, *read)) if path not in changed]
    read, changed = read[-MOST_FILES:], changed[-MOST_FILES:]
    parts = [summary.strip()]
    if changed:
        parts.append("## Files modified\n" + "\n".join(changed))
    if read:
        parts.append("## Files read\n" + "\n".join(read))
    if said := _open_request(covered, kept):
        parts.append(f"## The message being worked on, word for word\n{_short(said, tokens * CHARACTERS)}")
    return Compaction(
        summary="\n\n".join(part for part in parts if part),
        first_kept=kept[0].id,
        read=tuple(read),
        changed=tuple(changed),
    )


def without_model(covered: Sequence[Entry], previous: str, *, tokens: int) -> str:
    """A summary made by rules alone, in about so many tokens: the one before, and what people said."""
    said = [plain_user(entry) for entry in covered if isinstance(entry.payload, UserEntry)]
    lines = [f"- {' '.join(_short(text, SAID_LENGTH).split())}" for text in said[-SAID:] if text]
    parts = [
        f"[{len(covered)} entries of this conversation are left out here without a model's summary. The user can find "
        "them in the log; ask if you need something that is missing.]"
    ]
    if previous:
        parts.append(_short(previous, tokens * CHARACTERS // 2))
    if lines:
        parts.append("## What the user said, shortened\n" + _short("\n".join(lines), tokens * CHARACTERS // 2))
    return "\n\n".join(parts)


def plain_user(entry: Entry) -> str:
    """The words of a user entry, without metadata."""
    return "".join(map(plain, entry.payload.message.content)) if isinstance(entry.payload, UserEntry) else ""


def _open_request(covered: Sequence[Entry], kept: Sequence[Entry]) -> str:
    """The newest thing that a person said, when no later one is kept."""
    if any(isinstance(entry.payload, UserEntry) for entry in kept):
        return ""
    for entry in reversed(covered):
        if text := plain_user(entry):
            return text
    return ""


def _short(text: str, chars: int) -> str:
    if len(text) <= chars:
        return text
    cut = ends(text, chars=chars, share=0.7)
    return f"{cut.head} [… {cut.omitted:,} characters …] {cut.tail}"
