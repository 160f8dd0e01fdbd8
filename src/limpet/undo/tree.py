"""What lies in a workspace: every path with its kind, mode and content, read by descriptor. Links are never followed.

A path is bytes, relative to the workspace. A folder on the way that is swapped for a link is not entered: what is
behind it counts as not there.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Literal, TypeVar

from msgspec import Struct, structs

REGENERABLE = frozenset(
    (
        *(b"node_modules", b".venv", b"venv", b"__pycache__", b".tox", b".nox", b".cache", b".npm"),
        *(b".mypy_cache", b".pytest_cache", b".ruff_cache"),
    )
)
"""Folders that are made anew by whoever needs them: named, not looked into."""
GIT_OBJECTS = b".git/objects"
"""Objects of git are only ever added: what the restored references name is still there."""
STATE = b".limpet"
"""Limpet's own state at the top of a workspace: never looked at."""
SETTLED = 2_000_000_000
"""Nanoseconds after which a file's times tell its next change from the last one (some file systems count in 2 s)."""
DEEPEST = 100

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_TRIES = 3

Kind = Literal["file", "folder", "link", "other", "closed"]
"""`other` is a pipe, socket or device; `closed` a folder that is not looked into."""


class Node(Struct, frozen=True, array_like=True, gc=False):
    """What is at a path. `content` is the SHA-256 of a file or the target of a link; times are nanoseconds.

    `lost` says why a file has no `content`, or why a folder was not looked into, as the end of a sentence.
    """

    kind: Kind
    mode: int = 0
    size: int = 0
    mtime: int = 0
    ctime: int = 0
    inode: int = 0
    content: bytes = b""
    lost: str = ""


Nodes = dict[bytes, Node]
Touched = dict[bytes, Node | None]
"""States of paths, None where there is nothing."""
Keep = Callable[[bytes, bytes], None]
"""Keeps the bytes (second) of a file under their SHA-256 (first)."""


class Limits(Struct, frozen=True):
    """Bytes of one file and of all files of a turn that are kept; files that are looked at."""

    file: int = 10_000_000
    total: int = 200_000_000
    count: int = 50_000


class Tree(Struct, frozen=True, array_like=True):
    """The nodes of a workspace as they were read from `taken` (ns, by the clock of the file times) on."""

    taken: int = 0
    nodes: Nodes = {}


class TooManyError(OSError):
    """There is more than can be looked at."""


@contextmanager
def opened(workspace: str) -> Generator[int]:
    """The open workspace. Raises `OSError`."""
    root = os.open(os.path.realpath(workspace), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield root
    finally:
        os.close(root)


@contextmanager
def parent(root: int, path: bytes) -> Generator[tuple[int, bytes]]:
    """The open folder that `path` lies in, and its name there. Raises `OSError` where the way is not all folders."""
    *folders, name = path.split(b"/")
    folder = os.dup(root)
    try:
        for part in folders:
            inner = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder, name
    finally:
        os.close(folder)


def look(root: int, path: bytes) -> Node | None:
    """What is at `path`, without the content of a file; None for nothing, and for what cannot be looked at."""
    try:
        with parent(root, path) as (folder, name):
            return _node(folder, path, os.stat(name, dir_fd=folder, follow_symlinks=False))
    except OSError:
        return None


def _node(folder: int, path: bytes, status: os.stat_result) -> Node:
    name = path.rpartition(b"/")[2]
    mode = status.st_mode
    bits = stat.S_IMODE(mode)
    if stat.S_ISREG(mode):
        return Node("file", bits, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    if stat.S_ISDIR(mode):
        closed = name in REGENERABLE or path == GIT_OBJECTS or path.endswith(b"/" + GIT_OBJECTS)
        return Node("closed" if closed else "folder", bits, inode=status.st_ino)
    if stat.S_ISLNK(mode):
        target = b""
        with suppress(OSError):
            target = os.readlink(name, dir_fd=folder)
        return Node("link", inode=status.st_ino, content=target)
    return Node("other", bits, inode=status.st_ino)


def walk(root: int, base: bytes = b"", *, hidden: frozenset[tuple[int, int]] = frozenset(), most: int) -> Nodes:
    """Everything beneath the folder `base`, without contents. `hidden` folders (device, inode) are left out.

    Raises `TooManyError` beyond `most` paths, `OSError` when the folder cannot be read.
    """
    nodes: Nodes = {}
    if not base:
        _walk(root, b"", nodes, hidden=hidden, most=most)
        return nodes
    with parent(root, base) as (folder, name):
        fd = os.open(name, _FOLDER, dir_fd=folder)
        try:
            _walk(fd, base + b"/", nodes, hidden=hidden, most=most)
        finally:
            os.close(fd)
    return nodes


def _walk(folder: int, prefix: bytes, nodes: Nodes, *, hidden: frozenset[tuple[int, int]], most: int) -> None:
    """Raises `PermissionError`, with nothing added, when what is listed cannot be looked at."""
    found: Nodes = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            path = prefix + os.fsencode(entry.name)
            if path == STATE:
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # gone meanwhile
            if not hidden or (status.st_dev, status.st_ino) not in hidden:
                found[path] = _node(folder, path, status)
    nodes.update(found)
    if len(nodes) > most:
        raise TooManyError(f"there are over {most:,} files and folders")
    for path, node in found.items():
        if node.kind != "folder":
            continue
        try:
            if prefix.count(b"/") >= DEEPEST:
                raise OSError(0, "it is too deep")
            fd = os.open(path.rpartition(b"/")[2], _FOLDER, dir_fd=folder)
            try:
                _walk(fd, path + b"/", nodes, hidden=hidden, most=most)
            finally:
                os.close(fd)
        except TooManyError:
            raise
        except OSError as error:
            nodes[path] = structs.replace(node, lost=f"it cannot be read ({error.strerror})")


def fill(root: int, nodes: Nodes, limits: Limits, *, known: Tree, keep: Keep | None) -> None:
    """Add the contents of files to `nodes`; what `known` says of a file that has not changed since is believed.

    With `keep` the bytes of all others are kept too, within the limits; without it they are only hashed. Where all
    files together are too large, the smallest are kept.
    """
    largest = _largest_kept(nodes, limits) if keep else limits.file
    for path, node in nodes.items():
        if node.kind != "file":
            continue
        before = known.nodes.get(path)
        if before is not None and _unchanged(before, node, known.taken) and (before.content or not keep):
            nodes[path] = before
        elif node.size > largest:
            nodes[path] = structs.replace(node, lost=too_large(node, limits))
        else:
            nodes[path] = with_content(root, path, node, largest=limits.file, keep=keep)


def too_large(node: Node, limits: Limits) -> str:
    if node.size > limits.file:
        return f"it has {node.size / 1e6:,.1f} MB; files up to {limits.file / 1e6:g} MB are kept"
    return f"all files together have over {limits.total / 1e6:g} MB; the smaller ones are kept"


def _largest_kept(nodes: Nodes, limits: Limits) -> int:
    """The size up to which files are kept, so that all of them are within the limits."""
    sizes = sorted(node.size for node in nodes.values() if node.kind == "file" and node.size <= limits.file)
    if sum(sizes) <= limits.total:
        return limits.file
    total = 0
    for size in sizes:
        total += size
        if total > limits.total:
            return size - 1
    return limits.file


def _unchanged(before: Node, now: Node, taken: int) -> bool:
    """Whether a file is still what it was at `taken`, by its times alone."""
    return (
        before.kind == "file"
        and before.ctime == now.ctime
        and before.mtime == now.mtime
        and before.size == now.size
        and before.inode == now.inode
        and before.mode == now.mode
        and now.ctime < taken - SETTLED
    )


def with_content(root: int, path: bytes, node: Node, *, largest: int, keep: Keep | None = None) -> Node:
    """The file `node` as it is now, with its content; `lost` says why not."""
    try:
        for _ in range(_TRIES):
            data, status = read(root, path, largest)
            if data is not None:
                content = hashlib.sha256(data).digest()
                if keep:
                    keep(content, data)
                found = Node("file", stat.S_IMODE(status.st_mode), status.st_size, status.st_mtime_ns)
                return structs.replace(found, ctime=status.st_ctime_ns, inode=status.st_ino, content=content)
    except OSError as error:
        return structs.replace(node, lost=f"it cannot be read ({error.strerror})")
    return structs.replace(node, lost="it kept changing while it was read")


def read(root: int, path: bytes, largest: int) -> tuple[bytes | None, os.stat_result]:
    """The bytes of a file and its status; None when it changed meanwhile, or is larger. Raises `OSError`."""
    with parent(root, path) as (folder, name):
        fd = os.open(name, _FILE, dir_fd=folder)
    with open(fd, "rb") as file:
        first = os.fstat(fd)
        if not stat.S_ISREG(first.st_mode):
            raise OSError(0, "it is no file any more")
        data = file.read(largest + 1)
        last = os.fstat(fd)
    same = (first.st_mtime_ns, first.st_ctime_ns) == (last.st_mtime_ns, last.st_ctime_ns)
    return (data if same and len(data) == last.st_size else None), last


def same(one: Node | None, other: Node | None) -> bool:
    """Whether two states of a path are the same to the eye: kind, mode, content. Times do not count.

    Files without known content are compared by size, time of change and inode.
    """
    if one is None or other is None:
        return one is other
    if one.kind != other.kind or one.mode != other.mode:
        return False
    if one.kind == "file" and not (one.content and other.content):
        return (one.size, one.mtime, one.inode) == (other.size, other.mtime, other.inode)
    return one.content == other.content


def is_settled(tree: Tree) -> bool:
    """Whether the times of all files can be believed when they are the same next time."""
    return all(node.ctime < tree.taken - SETTLED for node in tree.nodes.values())


def is_unseen(node: Node | None) -> bool:
    """Whether this is a folder that was not looked into: one that is made anew anyway, or that could not be read."""
    return node is not None and (node.kind == "closed" or (node.kind == "folder" and bool(node.lost)))


def seen_in_both(before: Touched, after: Nodes) -> tuple[Touched, Nodes]:
    """Both without what lies in folders that were not looked into in the other one, wherever they are now.

    What is in them looks new or gone, but is not: the folder was moved, or may be read only before or after.
    """
    unseen = {path: node for path, node in before.items() if node is not None and is_unseen(node)}
    moved = {node.inode for path, node in unseen.items() if path not in after or after[path].inode != node.inode}
    folders = {path: node for path, node in after.items() if node.kind == "folder"}
    foreign = {path for path, node in folders.items() if node.inode in moved or _was_closed(unseen.get(path))}
    blind = {path for path, node in after.items() if is_unseen(node)}
    if not (unseen or blind):
        return before, after
    shut = {path: structs.replace(node, kind="closed") if path in foreign else node for path, node in after.items()}
    return _outside(before, blind), _outside(shut, foreign | unseen.keys())


def _was_closed(node: Node | None) -> bool:
    return node is not None and node.kind == "closed"


V = TypeVar("V")


def _outside(nodes: Mapping[bytes, V], folders: Collection[bytes]) -> dict[bytes, V]:
    """The nodes that lie in none of the folders."""
    return {path: node for path, node in nodes.items() if not any(above in folders for above in _above(path))}


def _above(path: bytes) -> Generator[bytes]:
    """The folders that a path lies in."""
    place = path.find(b"/")
    while place >= 0:
        yield path[:place]
        place = path.find(b"/", place + 1)


class Change(Struct, frozen=True, array_like=True):
    """A path that a turn changed: what was there before it and after it, None for nothing."""

    path: bytes
    before: Node | None
    after: Node | None


def compare(before: Mapping[bytes, Node | None], after: Mapping[bytes, Node | None]) -> list[Change]:
    """What differs, in the order of the paths."""
    return [
        Change(path, before.get(path), after.get(path))
        for path in sorted(before.keys() | after.keys())
        if not same(before.get(path), after.get(path))
    ]
