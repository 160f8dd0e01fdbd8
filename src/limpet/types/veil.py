"""Which paths a conversation must not see. Standard library only: the child process that searches files uses it too."""

from __future__ import annotations

from collections.abc import Sequence


def hides(relative: str, *, hidden: Sequence[str], shown: Sequence[str]) -> bool:
    """Whether a path below the workspace lies in one of `hidden`, and in none of `shown` that is longer.

    Case does not count: not every file system tells it apart.
    """
    return bool(hidden) and _depth(hidden, relative) > _depth(shown, relative)


def _depth(places: Sequence[str], relative: str) -> int:
    path = f"{relative}/".casefold()
    return max((len(one) for one in places if path.startswith(f"{one}/".casefold())), default=-1)
