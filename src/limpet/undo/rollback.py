"""Taking a turn back: what it would do, what is kept so that it can be taken back itself, and doing it.

All of it blocks; callers run it in threads.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

from msgspec import Struct

from limpet.undo import preview, restore, tree
from limpet.undo.copies import Point
from limpet.undo.keeper import Keeper, TurnName
from limpet.undo.restore import Step
from limpet.undo.tree import Change, Tree


class Proposal(Struct, frozen=True):
    """What taking back a turn would do: the steps, and the same in lines for people."""

    steps: tuple[Step, ...]
    actions: tuple[str, ...] = ()
    exceptions: tuple[str, ...] = ()
    differences: str = ""

    @property
    def fingerprint(self) -> str:
        return restore.fingerprint(self.steps)

    @property
    def restores(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.verdict == "restore")


def propose(keeper: Keeper, point: Point, *, others: Collection[bytes] = (), begun: bool = False) -> Proposal:
    """What can be taken back of a point now. `others` are paths that Limpet itself wrote meanwhile, `begun`
    says that it was begun before and killed.

    Raises `OSError`, `apsw.Error`.
    """
    changes = changes_of(keeper, point)
    with tree.opened(keeper.workspace) as root:
        now = keeper.now(root, [change.path for change in changes])
        steps = restore.plan(root, changes, now, has=keeper.copies.has, others=others, begun=begun)

        def present(path: bytes) -> bytes | None:
            return tree.read(root, path, preview.LARGEST)[0]

        return Proposal(
            tuple(steps),
            tuple(preview.actions(steps)),
            tuple(preview.exceptions(steps)),
            preview.differences(steps, keeper.copies.get, present),
        )


def changes_of(keeper: Keeper, point: Point) -> Sequence[Change]:
    """What a turn changed; of one that never came to its end, what is different now."""
    return keeper.changes_now(point) if point.changes is None else point.changes


def begin(keeper: Keeper, steps: Sequence[Step], mark: TurnName, *, of: Point, now: int) -> Point:
    """Keep what is there now at the paths that will be restored, as a point of its own. On the disk afterwards.

    Gives the point as it was begun first when that was done before.
    """
    if (known := keeper.copies.point(mark.turn)) is not None:
        return known
    with tree.opened(keeper.workspace) as root, keeper.copies.writing():
        nodes = {step.path: step.now for step in steps if step.now is not None}
        tree.fill(root, nodes, keeper.limits, known=Tree(), keep=lambda a, b: keeper.copies.keep(a, b, now=now))
        changes = tuple(Change(step.path, nodes.get(step.path), step.before) for step in steps)
        point = Point(mark.turn, mark.key, mark.session, keeper.workspace, now, undoes=of.turn, changes=changes)
        keeper.copies.save(point)
    return point


def carry_out(keeper: Keeper, steps: Sequence[Step]) -> list[tuple[bytes, str]]:
    """Restore. Gives what could not be and why."""
    with tree.opened(keeper.workspace) as root:
        return restore.restore(root, steps, keeper.copies.get)


def conclude(keeper: Keeper, point: Point, *, of: Point) -> None:
    """Note that `point` has taken back `of`."""
    with keeper.copies.writing():
        keeper.copies.mark(of.turn, undone=point.turn)
        if of.undoes:
            keeper.copies.mark(of.undoes, undone="")
        keeper.copies.show(point.key, "", "")


def paths(steps: Sequence[Step], workspace: str) -> list[str]:
    """The absolute paths of steps, for locks."""
    return [os.path.join(workspace, os.fsdecode(step.path)) for step in steps]


def irreversible(steps: Sequence[Step], keeper: Keeper) -> list[bytes]:
    """Files that would be removed and could not be brought back: they are too large to be kept."""
    return [
        step.path
        for step in steps
        if step.verdict == "restore" and step.now and step.now.kind == "file" and step.now.size > keeper.limits.file
    ]
