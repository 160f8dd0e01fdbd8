"""A workspace with a keeper, and the whole truth about a folder for comparing."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

from limpet.testing.clock import FakeClock
from limpet.undo import rollback
from limpet.undo.copies import Copies
from limpet.undo.keeper import Keeper, Retention, TurnName
from limpet.undo.rollback import Proposal
from limpet.undo.tree import Limits

KEY = "agent:main:main"


def turn(name: str) -> TurnName:
    return TurnName(name, KEY, "s1")


class Ground:
    """A home with a workspace `place`; `keeper` is one process's."""

    def __init__(self, folder: Path, *, limits: Limits | None = None, retention: Retention | None = None) -> None:
        self.place = folder / "workspace"
        self.place.mkdir(exist_ok=True)
        self.folder = folder
        self.clock = FakeClock()
        self.keeper = Keeper(
            Copies(str(folder / "undo" / "copies.db")),
            str(self.place),
            clock=self.clock,
            limits=limits or Limits(),
            retention=retention or Retention(),
        )

    def command(self, name: str = "t1") -> object:
        """What a turn keeps before its first command; gives what the log says of it."""
        return asyncio.run(self.keeper.before_command(turn(name)))

    def file(self, path: str, name: str = "t1") -> object:
        return asyncio.run(self.keeper.before_file(turn(name), str(self.place / path)))

    def finish(self, name: str = "t1") -> None:
        asyncio.run(self.keeper.finish(turn(name)))
        self.keeper.over(name)

    def propose(self, name: str = "t1") -> Proposal:
        point = self.keeper.copies.point(name)
        assert point is not None
        return rollback.propose(self.keeper, point)

    def take_back(self, name: str = "t1", *, mark: str = "r1") -> list[tuple[bytes, str]]:
        """A rollback of `name`, itself kept as `mark`; gives what failed."""
        point = self.keeper.copies.point(name)
        assert point is not None
        steps = rollback.propose(self.keeper, point).restores
        made = rollback.begin(self.keeper, steps, turn(mark), of=point, now=self.clock.now())
        failed = rollback.carry_out(self.keeper, steps)
        rollback.conclude(self.keeper, made, of=point)
        return failed


def picture(folder: Path) -> dict[str, tuple[object, ...]]:
    """Every path below `folder`: kind, mode, content."""
    found: dict[str, tuple[object, ...]] = {}
    for base, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(base, name)
            status = path.lstat()
            mode = stat.S_IMODE(status.st_mode)
            if stat.S_ISLNK(status.st_mode):
                found[str(path.relative_to(folder))] = ("link", os.readlink(path))
            elif stat.S_ISREG(status.st_mode):
                found[str(path.relative_to(folder))] = ("file", mode, path.read_bytes())
            else:
                found[str(path.relative_to(folder))] = (stat.S_IFMT(status.st_mode), mode)
    return found
