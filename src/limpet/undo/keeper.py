"""Keeping what a turn is about to change: before a file tool its file, before the first command the whole workspace.

A turn without changes costs nothing. The second scan of a workspace reads only what has changed since the first.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import apsw
from msgspec import Struct, structs

from limpet.types.entry import UndoPoint
from limpet.types.ports import Clock
from limpet.undo import tree
from limpet.undo.copies import DAY, Copies, Point
from limpet.undo.tree import Change, Limits, Node, Nodes, TooManyError, Touched, Tree

log = logging.getLogger(__name__)

SWEEP_EVERY = DAY // 4
NAMED = 20
"""Files that the log names when they could not be kept."""


class Retention(Struct, frozen=True):
    """Days that copies are kept, and their bytes in all. With 0 days nothing is kept."""

    days: int = 14
    total: int = 1_000_000_000


class TurnName(Struct, frozen=True):
    """A turn, the session key it runs under, and its session."""

    turn: str
    key: str
    session: str


class Keeper:
    """The undo points of the turns that work in `workspace`. `hidden` folders are never looked at."""

    def __init__(
        self,
        copies: Copies,
        workspace: str,
        *,
        clock: Clock,
        hidden: Sequence[str] = (),
        limits: Limits = Limits(),  # noqa: B008 (frozen)
        retention: Retention = Retention(),  # noqa: B008 (frozen)
    ) -> None:
        self.copies = copies
        self.workspace = os.path.realpath(workspace)
        self.limits = structs.replace(limits, total=min(limits.total, retention.total))
        self._retention = retention
        self._clock = clock
        self._hidden = tuple(hidden)
        self._running: dict[str, Point] = {}
        self._swept = 0
        self._lock = asyncio.Lock()

    @property
    def off(self) -> bool:
        return self._retention.days <= 0

    def close(self) -> None:
        self.copies.close()

    async def before_file(self, turn: TurnName, path: str) -> UndoPoint | None:
        """Keep what is at the absolute `path` before a file tool changes it. On the disk when this returns.

        Gives what the log is to say when it cannot be kept.
        """
        if self.off or not path.startswith(self.workspace + "/"):
            return None
        name = os.fsencode(path[len(self.workspace) + 1 :])
        return await self._guarded(turn, lambda point: self._keep_path(point, name))

    async def before_command(self, turn: TurnName) -> UndoPoint | None:
        """Keep the whole workspace before the first call of a turn that may change any of it.

        On the disk when this returns. Gives what the log is to say of it; None when it was done before.
        """
        if self.off:
            return None
        return await self._guarded(turn, self._keep_all)

    async def finish(self, turn: TurnName) -> None:
        """Note what the turn has changed, now that it ends. Nothing happens for one that had no point."""
        if self.off or (turn.turn not in self._running and not self.copies.exist):
            return
        failed = await self._guarded(turn, self._note_changes)
        if failed is not None:
            log.warning("The changes of turn %s are not known: %s", turn.turn, failed.refused)

    def over(self, turn: str) -> None:
        """The turn has ended: forget it."""
        self._running.pop(turn, None)

    async def _guarded(self, turn: TurnName, work: Callable[[Point], UndoPoint | None]) -> UndoPoint | None:
        """Do the work in a thread, one at a time. Whatever the disk does, the turn goes on, and the log says so."""
        async with self._lock:
            try:
                return await asyncio.to_thread(lambda: work(self._point(turn)))
            except (apsw.Error, OSError) as error:
                reason = f"what was there could not be kept: {error}"
                point = self._running.get(turn.turn) or self._fresh(turn)
                self._running[turn.turn] = structs.replace(point, refused=reason)
                return UndoPoint(refused=reason)

    def _fresh(self, turn: TurnName) -> Point:
        return Point(turn.turn, turn.key, turn.session, self.workspace, self._clock.now())

    def _point(self, turn: TurnName) -> Point:
        """The point of a turn, as this process or one before it left it."""
        known = self._running.get(turn.turn)
        if known is None:
            known = (self.copies.point(turn.turn) if self.copies.exist else None) or self._fresh(turn)
            self._running[turn.turn] = known
        return known

    def _keep_path(self, point: Point, name: bytes) -> UndoPoint | None:
        if point.tree is not None or name in point.touched:
            return None
        with tree.opened(self.workspace) as root, self.copies.writing():
            touched: Touched = {**point.touched, **_missing_folders(root, name)}
            for path, node in self._states(root, name, sum(map(_size, point.touched.values()))).items():
                touched.setdefault(path, node)
            point = structs.replace(point, touched=touched)
            self.copies.save(point)
            self._sweep()
        self._running[point.turn] = point
        lost = [path for path, node in touched.items() if node is not None and node.lost and path.startswith(name)]
        return UndoPoint(unkept=named(lost)) if lost else None

    def _states(self, root: int, name: bytes, used: int) -> Touched:
        """What is at a path and beneath it, kept within what `used` bytes leave of the limit."""
        node = tree.look(root, name)
        found: Nodes = {} if node is None else {name: node}
        if node is not None and node.kind == "folder":
            found.update(tree.walk(root, name, hidden=_ids(self._hidden), most=self.limits.count))
        limits = structs.replace(self.limits, total=max(0, self.limits.total - used))
        tree.fill(root, found, limits, known=Tree(), keep=self._keep)
        return {name: None, **found}

    def _keep_all(self, point: Point) -> UndoPoint | None:
        if point.tree is not None or point.refused:
            return None
        try:
            with tree.opened(self.workspace) as root, self.copies.writing():
                known = self.copies.index(self.workspace)
                taken = self.scan(root, known, keep=True)
                if taken.nodes != known.nodes or not tree.is_settled(known):
                    self.copies.set_index(self.workspace, taken, before=known, now=self._clock.now())
                point = structs.replace(point, tree=taken)
                self.copies.save(point)
                self._sweep()
        except TooManyError as error:
            point = structs.replace(point, refused=str(error))
            with self.copies.writing():
                self.copies.save(point)
            self._running[point.turn] = point
            return UndoPoint(refused=point.refused)
        self._running[point.turn] = point
        lost = [path for path, node in taken.nodes.items() if node.lost]
        files = [node for node in taken.nodes.values() if node.kind == "file"]
        return UndoPoint(files=len(files), size=sum(node.size for node in files if not node.lost), unkept=named(lost))

    def scan(self, root: int, known: Tree, *, keep: bool) -> Tree:
        """The whole workspace. With `keep` new contents are kept (inside `writing`), else only hashed.

        Raises `TooManyError`, `OSError`.
        """
        began = time.time_ns()
        nodes = tree.walk(root, hidden=_ids(self._hidden), most=self.limits.count)
        tree.fill(root, nodes, self.limits, known=known, keep=self._keep if keep else None)
        return Tree(began, nodes)

    def _note_changes(self, point: Point) -> None:
        if point.tree is None and not point.touched:
            return
        changes, closed = self._compare(point)
        point = structs.replace(point, changes=changes, closed=closed)
        with self.copies.writing():
            self.copies.end(point, now=self._clock.now())
        self._running[point.turn] = point

    def changes_now(self, point: Point) -> tuple[Change, ...]:
        """What is different now from before the turn of `point`. Raises `OSError`."""
        return self._compare(point)[0]

    def _compare(self, point: Point) -> tuple[tuple[Change, ...], tuple[bytes, ...]]:
        """What is different now, and the folders that were not looked into."""
        before: Touched = {**(point.tree.nodes if point.tree else {}), **point.touched}
        with tree.opened(self.workspace) as root:
            if point.tree is None:
                return tuple(tree.compare(before, self.now(root, point.touched))), ()
            after = self.scan(root, point.tree, keep=False).nodes
        unseen = tuple(sorted(path for path, node in after.items() if tree.is_unseen(node)))
        return tuple(tree.compare(*tree.seen_in_both(before, after))), unseen

    def now(self, root: int, paths: Sequence[bytes] | Touched) -> Touched:
        """What is at these paths now, with the contents of files that are not too large."""
        found: Touched = {}
        for path in paths:
            node = tree.look(root, path)
            if node is not None and node.kind == "file" and node.size <= self.limits.file:
                node = tree.with_content(root, path, node, largest=self.limits.file)
            found[path] = node
        return found

    def _keep(self, content: bytes, data: bytes) -> None:
        self.copies.keep(content, data, now=self._clock.now())

    def _sweep(self) -> None:
        now = self._clock.now()
        if now - self._swept >= SWEEP_EVERY:
            self._swept = now
            self.copies.sweep(before=now - self._retention.days * DAY, largest=self._retention.total)


def _ids(folders: Sequence[str]) -> frozenset[tuple[int, int]]:
    """The (device, inode) of those folders that exist."""
    found: set[tuple[int, int]] = set()
    for folder in folders:
        with suppress(OSError):
            status = os.stat(folder)
            found.add((status.st_dev, status.st_ino))
    return frozenset(found)


def _missing_folders(root: int, name: bytes) -> Touched:
    """The folders on the way to a path that are not there yet, as nothing."""
    parts = name.split(b"/")
    above = [b"/".join(parts[:count]) for count in range(1, len(parts))]
    return {path: None for path in above if tree.look(root, path) is None}


def _size(node: Node | None) -> int:
    return node.size if node is not None and node.content and node.kind == "file" else 0


def named(paths: Sequence[bytes]) -> tuple[str, ...]:
    """Paths for people and the log, the first ones, and how many more there are."""
    shown = tuple(show(path) for path in paths[:NAMED])
    return (*shown, f"and {len(paths) - NAMED} more") if len(paths) > NAMED else shown


def show(path: bytes) -> str:
    """A path for people: one line, valid Unicode."""
    text = path.decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)
