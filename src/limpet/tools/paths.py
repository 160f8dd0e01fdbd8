"""Paths of file tools: every one is walked from an open descriptor of the workspace, links included.

A path is never checked as text and opened afterwards. Each folder on the way is opened beneath the one before
with `O_NOFOLLOW`, links are read and followed by this module alone, and `..` goes back to a descriptor that is
already held. So a folder swapped for a link between two steps is either seen as a link or not entered at all.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Literal

from msgspec import Struct

from limpet.errors import PathRefusedError, ToolError
from limpet.types.tool import NO_VEIL, Veil

STATE = ".limpet"
"""Folder of Limpet's own state in a workspace: hidden from listings, never changed by a tool's path."""

Kind = Literal["file", "folder", "link", "missing"]

_LINKS = 40
"""Links followed on one path, as Linux does."""
_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_SPACES = dict.fromkeys(
    map(ord, "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"), " "
)


class Spot(Struct, frozen=True):
    """A place beneath the root: entry `name` of the open folder `folder`. `path` is absolute, without links.

    `name` is `.` for the root itself. `relative` is the path as people and models are shown it.
    """

    folder: int
    name: str
    path: str
    relative: str
    kind: Kind


class Root:
    """An open folder that paths are resolved beneath. Use as a context manager; its spots live as long as it."""

    def __init__(self, workspace: str, *, veil: Veil = NO_VEIL) -> None:
        """What `veil` hides is refused, by whatever way a path leads there."""
        self.veil = veil
        self.given = os.path.normpath(workspace)
        try:
            self.path = os.path.realpath(workspace, strict=True)
            self._fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise ToolError(f"the workspace {workspace} cannot be opened: {error.strerror}") from None
        self._held = [self._fd]

    def __enter__(self) -> Root:
        return self

    def __exit__(self, *_: object) -> None:
        for fd in self._held:
            with suppress(OSError):
                os.close(fd)
        self._held = []

    @property
    def fd(self) -> int:
        """The open folder itself."""
        return self._fd

    def find(self, path: str, *, reading: bool = False) -> Spot:
        """Where `path` leads. Reading also tries the spellings that macOS and chat apps make of a name.

        Raises `PathRefusedError` naming the rule when it leads out, or to something that is no file or folder.
        """
        spot = self._walk(self._parts(path), path)
        if spot.kind != "missing" or not reading:
            return spot
        for variant in _spellings(path):
            other = self._walk(self._parts(variant), path)
            if other.kind != "missing":
                return other
        return spot

    def target(self, path: str, *, link_itself: bool = False) -> Spot:
        """As `find`, for a path about to be changed: not the root itself, nothing of Limpet's own state.

        With `link_itself` a link at the end of the path is not followed.
        """
        spot = self._walk(self._parts(path), path, link_itself=link_itself)
        if spot.name == ".":
            raise PathRefusedError(f"{path!r} is the workspace itself")
        if spot.relative.split("/", 1)[0].casefold() == STATE:
            raise PathRefusedError(
                f"{path!r} is refused: {STATE}/ holds Limpet's own state and is not changed by tools"
            )
        return spot

    def make_folders(self, path: str) -> Spot:
        """The spot of `path`, its missing parent folders made first."""
        parts = self._parts(path)
        for count in range(1, len(parts)):
            spot = self._walk(parts[:count], path)
            if spot.folder < 0:
                raise ToolError(f"{path!r}: a link on its way leads to a folder that does not exist")
            if spot.kind == "missing":
                _make_folder(spot.name, spot.folder, path)
            elif spot.kind == "file":
                raise ToolError(f"{path!r}: {spot.relative} is a file, not a folder")
        spot = self.target(path)
        if spot.folder < 0:
            raise ToolError(f"{path!r}: a link on its way leads to a folder that does not exist")
        return spot

    def state_folder(self, path: str) -> int:
        """The open folder `path` of Limpet's own state, made when missing; never through a link."""
        fd = self._fd
        for part in path.split("/"):
            _make_folder(part, fd, path, mode=0o700)
            fd = self._enter(part, fd, path)
        return fd

    def _parts(self, path: str) -> list[str]:
        """The components of `path` beneath the root. Absolute paths must begin with the root's own."""
        _check_text(path)
        if path.startswith("@"):
            path = path[1:]
        if path == "~" or path.startswith("~"):
            raise PathRefusedError(
                f"{path!r} is refused: ~ is the home folder, outside the workspace", hint="Use a path in the workspace."
            )
        if not path.startswith("/"):
            return path.split("/")
        for root in (self.path, self.given):
            if path == root or path.startswith(root.rstrip("/") + "/"):
                return path[len(root) :].split("/")
        raise PathRefusedError(
            f"{path!r} is refused: it is outside the workspace {self.path}",
            hint="Use a path relative to the workspace.",
        )

    def _walk(self, parts: list[str], shown: str, *, link_itself: bool = False) -> Spot:
        spot = self._lead(parts, shown, link_itself=link_itself)
        if self.veil.hides(spot.relative):
            raise PathRefusedError(f"{shown!r} is refused: it is not part of this conversation")
        return spot

    def _lead(self, parts: list[str], shown: str, *, link_itself: bool = False) -> Spot:
        todo = [part for part in reversed(parts) if part not in ("", ".")]
        folder_wanted = bool(parts) and parts[-1] == ""
        stack: list[tuple[int, str]] = [(self._fd, "")]
        links = 0
        while todo:
            part = todo.pop()
            if part == "..":
                if len(stack) == 1:
                    raise _outside(shown, self.path)
                stack.pop()
                continue
            status = _status(part, stack[-1][0])
            if status is None:
                if todo:
                    return self._missing(stack, part, todo, shown)
                return self._spot(stack, part, "missing")
            if stat.S_ISLNK(status.st_mode):
                if link_itself and not todo:
                    return self._spot(stack, part, "link")
                links += 1
                if links > _LINKS:
                    raise PathRefusedError(f"{shown!r} is refused: too many links on its way")
                target = _read_link(part, stack[-1][0], shown)
                if target.startswith("/"):
                    stack = stack[:1]
                todo.extend(reversed([one for one in self._link(target, shown) if one not in ("", ".")]))
                continue
            if stat.S_ISDIR(status.st_mode):
                stack.append((self._enter(part, stack[-1][0], shown), part))
                continue
            return self._last(stack, part, status, rest=todo, shown=shown, folder_wanted=folder_wanted)
        if len(stack) == 1:
            return Spot(self._fd, ".", self.path, ".", "folder")
        return self._spot(stack[:-1], stack[-1][1], "folder")

    def _last(
        self,
        stack: list[tuple[int, str]],
        part: str,
        status: os.stat_result,
        *,
        rest: list[str],
        shown: str,
        folder_wanted: bool,
    ) -> Spot:
        if not stat.S_ISREG(status.st_mode):
            raise PathRefusedError(f"{shown!r} is refused: it is a {_special(status.st_mode)}, not a regular file")
        if rest or folder_wanted:
            raise ToolError(f"{shown!r}: {part} is a file, not a folder")
        return self._spot(stack, part, "file")

    def _link(self, target: str, shown: str) -> list[str]:
        if not target.startswith("/"):
            return target.split("/")
        for root in (self.path, self.given):
            if target == root or target.startswith(root.rstrip("/") + "/"):
                return target[len(root) :].split("/")
        raise PathRefusedError(f"{shown!r} is refused: a link on its way leads outside the workspace {self.path}")

    def _enter(self, part: str, parent: int, shown: str) -> int:
        try:
            fd = os.open(part, _FOLDER, dir_fd=parent)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise PathRefusedError(f"{shown!r} is refused: {part} was replaced while it was being opened") from None
            raise ToolError(f"{shown!r}: {error.strerror}") from None
        self._held.append(fd)
        return fd

    def _spot(self, stack: list[tuple[int, str]], name: str, kind: Kind) -> Spot:
        relative = "/".join([*(folder for _, folder in stack[1:]), name])
        return Spot(stack[-1][0], name, os.path.join(self.path, relative), relative, kind)

    def _missing(self, stack: list[tuple[int, str]], part: str, rest: list[str], shown: str) -> Spot:
        """A spot whose parent folders are missing too. `..` behind something missing has no meaning here."""
        if ".." in rest:
            raise PathRefusedError(f"{shown!r} is refused: it goes back (..) from a folder that does not exist")
        relative = "/".join([*(folder for _, folder in stack[1:]), part, *reversed(rest)])
        return Spot(-1, rest[0], os.path.join(self.path, relative), relative, "missing")


def open_file(spot: Spot) -> int:
    """A descriptor of the regular file at `spot`, for reading. The caller closes it."""
    try:
        fd = os.open(spot.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=spot.folder)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise PathRefusedError(f"{spot.relative} is refused: it was replaced by a link meanwhile") from None
        raise ToolError(f"{spot.relative}: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise PathRefusedError(f"{spot.relative} is refused: it is not a regular file")
    return fd


def read_bytes(spot: Spot, *, limit: int = -1) -> bytes:
    """The bytes of the file at `spot`, at most `limit`."""
    with open(open_file(spot), "rb") as file:
        return file.read(limit)


@contextmanager
def open_folder(spot: Spot) -> Generator[int]:
    """A descriptor of the folder at `spot` that can be listed."""
    try:
        fd = os.open(spot.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=spot.folder)
    except OSError as error:
        raise ToolError(f"{spot.relative}: {error.strerror}") from None
    try:
        yield fd
    finally:
        os.close(fd)


def missing(path: str) -> ToolError:
    return ToolError(f"{path!r} does not exist", hint="Look with list_dir or find_files.")


def _status(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ToolError(f"{name!r}: {error.strerror}") from None


def _read_link(name: str, folder: int, shown: str) -> str:
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError:
        raise PathRefusedError(f"{shown!r} is refused: {name} was replaced while it was being opened") from None


def _make_folder(name: str, folder: int, shown: str, *, mode: int = 0o777) -> None:
    try:
        os.mkdir(name, mode, dir_fd=folder)
    except FileExistsError:
        return
    except OSError as error:
        raise ToolError(f"{shown!r}: the folder {name} cannot be made: {error.strerror}") from None


def _check_text(path: str) -> None:
    if not path.strip():
        raise PathRefusedError("an empty path is refused")
    if "\x00" in path:
        raise PathRefusedError(f"{path!r} is refused: a path cannot hold a NUL byte")
    if any(ord(char) < 32 or ord(char) == 127 or "\ud800" <= char <= "\udfff" for char in path):
        raise PathRefusedError(f"{path!r} is refused: a path cannot hold control characters")


def _outside(shown: str, root: str) -> PathRefusedError:
    return PathRefusedError(
        f"{shown!r} is refused: it leads outside the workspace {root}", hint="Use a path in the workspace."
    )


def _special(mode: int) -> str:
    kinds = {stat.S_IFIFO: "named pipe", stat.S_IFSOCK: "socket", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}
    return kinds.get(stat.S_IFMT(mode), "special file")


def _spellings(path: str) -> Iterator[str]:
    """Other spellings of a name that read the same on screen (as macOS makes them)."""
    import unicodedata  # rare: only when the path as given does not exist

    tried = {path}
    plain = path.translate(_SPACES)
    screenshot = plain
    for mark in ("AM", "PM", "am", "pm"):
        screenshot = screenshot.replace(f" {mark}", f"\u202f{mark}")
    for variant in (plain, screenshot, plain.replace("'", "\u2019"), screenshot.replace("'", "\u2019")):
        for form in (variant, unicodedata.normalize("NFD", variant), unicodedata.normalize("NFC", variant)):
            if form not in tried:
                tried.add(form)
                yield form
