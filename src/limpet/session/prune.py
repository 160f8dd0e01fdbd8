"""Pruning: old tool results and images that are sent shorter from some point on (FEATURES D2).

What is decided here goes into the log and is only read from then on: the same bytes go out in every later request.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from limpet.session.room import Room
from limpet.toolkit.truncate import ends
from limpet.types.content import Image, ResultBlock, Text, UserBlock
from limpet.types.entry import AssistantEntry, Entry, ImageAged, Prune, ToolResultEntry, UserEntry
from limpet.types.tool import ToolResult

KEEP_ANSWERS = 3
"""The results of so many newest assistant messages stay whole."""
SOFT_FROM = 4_000
"""Characters from which a result is shortened, to a head and a tail of `SOFT_END` each."""
SOFT_END = 1_500
IMAGE_TURNS = 3
"""Images of so many newest turns are sent as pictures."""
_PER_TOKEN = 4
"""Characters of a token when it is counted what shortening saves: the saving is rather under- than overrated."""
CLEARED = "[This old result was cleared to make room: {size:,} characters. Call the tool again if you need it.]"


class _Candidate(Struct, frozen=True):
    id: str
    size: int
    pictures: bool


def prunes(entries: Sequence[Entry], tokens: int, room: Room) -> list[Prune]:
    """What to shorten of the visible `entries`, which are sent in `tokens`; nothing when there is space enough."""
    if tokens <= room.soft:
        return []
    soft_done, hard_done = pruned(entries)
    old = [one for one in _old_results(entries) if one.id not in hard_done and not one.pictures]
    sizes = {one.id: min(one.size, 2 * SOFT_END) if one.id in soft_done else one.size for one in old}
    soft = [one.id for one in old if sizes[one.id] > SOFT_FROM]
    left = tokens - sum(sizes[name] - 2 * SOFT_END for name in soft) // _PER_TOKEN
    sizes.update(dict.fromkeys(soft, 2 * SOFT_END))
    hard: list[str] = []
    if sum(one.size for one in old) >= room.prunable:
        for name, size in sizes.items():
            if left <= room.hard:
                break
            hard.append(name)
            left -= size // _PER_TOKEN
    soft = [name for name in soft if name not in hard]
    found = (Prune(tuple(soft), how="soft"), Prune(tuple(hard), how="hard"))
    return [prune for prune in found if prune.targets]


def aged_images(entries: Sequence[Entry]) -> list[ImageAged]:
    """The entries whose images are older than three turns and still sent as pictures."""
    done = {target for entry in entries if isinstance(entry.payload, ImageAged) for target in entry.payload.targets}
    turns = list(dict.fromkeys(entry.turn for entry in entries if isinstance(entry.payload, UserEntry)))
    fresh = set(turns[-IMAGE_TURNS:])
    old = [
        entry.id for entry in entries if entry.turn not in fresh and entry.id not in done and _has_image(entry.payload)
    ]
    return [ImageAged(tuple(old))] if old else []


def shortened(result: ToolResult, how: str) -> tuple[ResultBlock, ...]:
    """The blocks of a pruned result; its images stay."""
    others = tuple(block for block in result.content if not isinstance(block, Text))
    text = result.text
    if how == "hard":
        return (Text(CLEARED.format(size=len(text))), *others)
    if len(text) <= 2 * SOFT_END:
        return result.content
    cut = ends(text, chars=2 * SOFT_END, share=0.5)
    note = f"[{cut.omitted:,} of {cut.total:,} characters left out of this old result]"
    return (Text(f"{cut.head.rstrip()}\n{note}\n{cut.tail}"), *others)


def aged(blocks: tuple[UserBlock, ...]) -> tuple[UserBlock, ...]:
    """`blocks` with a line of text in place of each image."""
    return tuple(Text(_line(block)) if isinstance(block, Image) else block for block in blocks)


def _line(image: Image) -> str:
    size = f", {image.width}x{image.height}" if image.width and image.height else ""
    return f"[image: {image.name or image.mime}{size}]"


def pruned(entries: Sequence[Entry]) -> tuple[set[str], set[str]]:
    """The results that are sent shortened, and those that are sent as a placeholder."""
    found: dict[str, set[str]] = {"soft": set(), "hard": set()}
    for entry in entries:
        if isinstance(entry.payload, Prune):
            found[entry.payload.how].update(entry.payload.targets)
    return found["soft"], found["hard"]


def _old_results(entries: Sequence[Entry]) -> list[_Candidate]:
    """The results of all but the newest assistant messages."""
    answers = [entry.id for entry in entries if isinstance(entry.payload, AssistantEntry)]
    fresh = set(answers[-KEEP_ANSWERS:])
    return [
        _Candidate(entry.id, len(payload.result.text), pictures=_has_image(payload))
        for entry in entries
        if isinstance(payload := entry.payload, ToolResultEntry) and payload.assistant not in fresh
    ]


def _has_image(payload: object) -> bool:
    match payload:
        case UserEntry(message=message):
            return any(isinstance(block, Image) for block in message.content)
        case ToolResultEntry(result=result):
            return any(isinstance(block, Image) for block in result.content)
        case _:
            return False
