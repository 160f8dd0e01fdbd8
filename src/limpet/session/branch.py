"""Places of a session's tree that people name: the messages they can go back to, and labels."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from limpet.errors import InputError
from limpet.session.project import Projection
from limpet.session.stand_in import plain_user
from limpet.session.tree import line_to, path
from limpet.types.entry import AssistantEntry, Entry, Label, Leaf, UserEntry

SHOWN = 10
"""Messages that a list of places shows."""
FIRST_WORDS = 60
"""Characters of a message by which it is known again."""
LONGEST_LABEL = 60
_SHORTEST_ID = 4


def places(entries: Sequence[Entry]) -> list[Entry]:
    """What people said on the way to the leaf, newest first: number 1 is the newest."""
    return [entry for entry in reversed(path(entries)) if isinstance(entry.payload, UserEntry)]


def listing(entries: Sequence[Entry]) -> str:
    """The newest places with their numbers, and the labels, for people."""
    named = labels(entries)
    lines = [f"{number:>2}  {first_words(entry)}" for number, entry in enumerate(places(entries)[:SHOWN], start=1)]
    if named:
        lines.append("labels: " + ", ".join(named))
    return "\n".join(lines)


def first_words(entry: Entry) -> str:
    """The beginning of what a person said, in one line."""
    text = " ".join(plain_user(entry).split())
    return text if len(text) <= FIRST_WORDS else f"{text[:FIRST_WORDS].rstrip()}…"


def labels(entries: Sequence[Entry]) -> dict[str, str]:
    """Each label with the entry that it was given to last."""
    known = {entry.id for entry in entries}
    return {
        entry.payload.label: entry.payload.target
        for entry in entries
        if isinstance(entry.payload, Label) and entry.payload.target in known
    }


def labelled(entries: Sequence[Entry]) -> str:
    """The newest message on the way to the leaf, which a label is for. Raises `InputError`."""
    for entry in reversed(path(entries)):
        match entry.payload:
            case UserEntry():
                return entry.id
            case AssistantEntry(message=message) if not message.calls:
                return entry.id
            case _:
                pass
    raise InputError("Nothing was said here yet.")


def check_label(text: str) -> str:
    """`text` as a label. Raises `InputError` when it cannot be one."""
    label = " ".join(text.split())
    if not label or len(label) > LONGEST_LABEL or label.isdecimal() or not label.isprintable():
        raise InputError(
            f"{text!r} is not a label.", hint=f"Use up to {LONGEST_LABEL} characters that are not just a number."
        )
    return label


def target(entries: Sequence[Entry], place: str) -> str:
    """The entry to go back to. `place` is the number of a message (it and what follows are left), a label, or the
    beginning of an entry's id (both are kept). Empty for the very beginning. Raises `InputError`.
    """
    if place.isdecimal():
        said = places(entries)
        if not 1 <= int(place) <= len(said):
            raise InputError(f"There is no message {place}: there are {len(said)} of yours.")
        return said[int(place) - 1].parent
    found = labels(entries).get(" ".join(place.split())) or entry_id(
        [entry for entry in entries if not isinstance(entry.payload, Label | Leaf)], place
    )
    _check_whole(entries, found)
    return found


def line_with_labels(entries: Sequence[Entry], leaf: str) -> list[Entry]:
    """The entries from the beginning to `leaf`, then the labels that they were given: what a fork begins with."""
    line = line_to(entries, leaf)
    kept = {entry.id for entry in line}
    return line + [one for one in entries if isinstance(one.payload, Label) and one.payload.target in kept]


def entry_id(entries: Sequence[Entry], place: str) -> str:
    """The whole id of the entry that `place` is the beginning of. Raises `InputError`."""
    found = [entry.id for entry in entries if len(place) >= _SHORTEST_ID and entry.id.startswith(place)]
    if len(found) != 1:
        many = f"{place} is the beginning of {len(found)} entries." if found else f"There is no place {place!r}."
        raise InputError(many, hint="Give the number of a message, a label, or an entry's id.")
    return found[0]


def _check_whole(entries: Sequence[Entry], leaf: str) -> None:
    """Refuse a place between calls and their results. Raises `InputError`."""
    projection = Projection()
    projection.extend(line_to(entries, leaf))
    if projection.pending():
        raise InputError(f"{leaf} stands between calls and their results.", hint="Choose a message.")


class Tip(Struct, frozen=True):
    """The end of a branch: its last entry, and the beginning of what a person said last on it."""

    entry: Entry
    words: str


def tips(entries: Sequence[Entry]) -> list[Tip]:
    """The ends of all branches of a tree, newest first."""
    tree = [entry for entry in entries if not isinstance(entry.payload, Label | Leaf)]
    parents = {entry.parent for entry in tree}
    said: dict[str, str] = {}
    for entry in tree:
        said[entry.id] = first_words(entry) if isinstance(entry.payload, UserEntry) else said.get(entry.parent, "")
    return [Tip(entry, said[entry.id]) for entry in reversed(tree) if entry.id not in parents]
