"""Where a log may be cut in two, so that no call is parted from its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from limpet.types.entry import AssistantEntry, Entry, Note, ToolResultEntry, ToolStarted, UserEntry


def cut_points(entries: Sequence[Entry]) -> list[int]:
    """Places (indices) at which a kept part may begin: at what a person said, at a note, at an answer.

    A result is never the first kept one, and nothing is cut between a call and its results. The first place is left
    out: a cut there covers nothing.
    """
    last_result: dict[str, int] = {}
    for place, entry in enumerate(entries):
        if isinstance(entry.payload, ToolResultEntry | ToolStarted):
            last_result[entry.payload.assistant] = place
    points: list[int] = []
    open_until = -1
    for place, entry in enumerate(entries):
        begins = isinstance(entry.payload, UserEntry | Note | AssistantEntry)
        if begins and place > max(open_until, 0):
            points.append(place)
        if isinstance(entry.payload, AssistantEntry):
            open_until = max(open_until, last_result.get(entry.id, -1))
    return points


def cut(entries: Sequence[Entry], keep: int, *, weigh: Callable[[Entry], int], turns: bool = False) -> int:
    """The place of the first entry to keep, so that the kept ones weigh about `keep`; 0 when there is none.

    The newest complete exchange is kept even when it weighs more. `turns`: only whole turns are kept.
    """
    points = [point for point in cut_points(entries) if not turns or isinstance(entries[point].payload, UserEntry)]
    if not points:
        return 0
    weight, place = 0, len(entries)
    chosen = points[-1]
    for point in reversed(points):
        weight += sum(map(weigh, entries[point:place]))
        place = point
        if weight > keep:
            break
        chosen = point
    return chosen


def files_touched(entries: Sequence[Entry]) -> tuple[list[str], list[str]]:
    """Absolute paths of files that tools read, and of those they changed, each once, in their order."""
    changing = {
        (entry.payload.assistant, entry.payload.index)
        for entry in entries
        if isinstance(entry.payload, ToolStarted) and entry.payload.intent is not None
    }
    read: dict[str, None] = {}
    changed: dict[str, None] = {}
    for entry in entries:
        match entry.payload:
            case ToolResultEntry(assistant=assistant, index=index, result=result) if (
                result.details.path and not result.is_error
            ):
                found = changed if (assistant, index) in changing else read
                found.update(dict.fromkeys((result.details.path, *(path for path, _ in result.details.files))))
            case _:
                pass
    return [path for path in read if path not in changed], list(changed)
