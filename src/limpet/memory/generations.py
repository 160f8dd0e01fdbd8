"""The files of an index: `N.db`, of which the highest one of this version counts. A new one is made beside the old and
takes its place by a rename; who is killed meanwhile leaves the old one and nothing that blocks.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

import apsw

from limpet.memory.index import VERSION, Index

BUILDING = "building.db"
LOCK = "lock"
WAIT = 5.0
"""Seconds to wait for another process that makes the first file."""
_NAME = re.compile(r"(\d{1,15})\.db")
_PRAGMAS = "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA secure_delete = ON"
_BESIDE = ("", "-wal", "-shm", "-journal")


class Generations:
    """The files of the index in `folder`, which is made when needed. All but `newest` raise `apsw.Error`, `OSError`."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def newest(self) -> int:
        """The number of the newest file, 0 when there is none."""
        try:
            names = os.listdir(self.folder)
        except OSError:
            return 0
        return max((int(match[1]) for name in names if (match := _NAME.fullmatch(name))), default=0)

    def open(self) -> tuple[Index, int]:
        """The newest file of this version, made when there is none; and its number."""
        for _ in range(3):  # it may be replaced in the moment between
            number = self.newest()
            if number and (index := self._opened(number)):
                return index, number
            self.make(lambda index: None, over=number)
        raise apsw.CantOpenError(f"no index in {self.folder}")

    def _opened(self, number: int) -> Index | None:
        """None when it is of another version, or gone."""
        try:
            index = Index(self.path(number), fresh=False)
        except apsw.CantOpenError:
            return None
        try:
            row = index.connection.execute("PRAGMA user_version").fetchone()
            if row == (VERSION,):
                index.connection.execute(_PRAGMAS).fetchall()
                return index
        except BaseException:
            index.close()
            raise
        index.close()
        return None

    def make(self, fill: Callable[[Index], None], *, over: int) -> int:
        """Make the file that follows number `over`, unless somebody has meanwhile; the number of the newest then."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        with self._alone():
            if (newest := self.newest()) > over:
                return newest
            building = os.path.join(self.folder, BUILDING)
            _remove(building)  # of one who was killed: nobody else can be at it
            os.close(os.open(building, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
            index = Index(building)
            try:
                fill(index)
            finally:
                index.close()
            os.rename(building, self.path(newest + 1))
            for number in range(max(1, newest - 3), newest + 1):
                _remove(self.path(number))
            return newest + 1

    def path(self, number: int) -> str:
        return os.path.join(self.folder, f"{number}.db")

    @contextmanager
    def _alone(self) -> Generator[None]:
        """The lock of who makes a file; it goes with its holder. Raises `apsw.BusyError`."""
        handle = os.open(os.path.join(self.folder, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            deadline = time.monotonic() + WAIT
            while True:
                with suppress(BlockingIOError):
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                if time.monotonic() > deadline:
                    raise apsw.BusyError("another process makes the index")
                time.sleep(0.02)
            yield
        finally:
            os.close(handle)


def _remove(path: str) -> None:
    for beside in _BESIDE:
        with suppress(FileNotFoundError):
            os.unlink(path + beside)
