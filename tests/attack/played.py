"""What became of the attacks of one kind."""

from __future__ import annotations

from typing import NamedTuple


class Played(NamedTuple):
    """One attempt. `asked`: the owner would have been asked; with nobody there the answer was no."""

    kind: str
    name: str
    succeeded: bool
    asked: bool = False


def failures(played: list[Played]) -> list[str]:
    """Which attacks got through."""
    return [f"{one.kind}: {one.name}" for one in played if one.succeeded]
