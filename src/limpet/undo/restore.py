"""Bringing a workspace back: a plan that can be shown, then exactly that plan.

A path is restored only when it is still as the turn left it; what anybody changed since is left alone and named.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Literal

import msgspec
from msgspec import Struct, structs

from limpet.undo import tree
from limpet.undo.tree import Change, Node, Touched, same

Verdict = Literal["restore", "already", "changed", "lost", "left"]
"""`already` as before; `changed` by somebody since; `lost`: what was there is not kept; `left`: not ours to touch."""
Get = Callable[[bytes], bytes | None]


class Step(Struct, frozen=True, array_like=True):
    """What is to become of one path: what was there before the turn, what is there now, and why not, where not."""

    path: bytes
    before: Node | None
    now: Node | None
    verdict: Verdict
    why: str = ""


def plan(
    root: int,
    changes: Sequence[Change],
    now: Touched,
    *,
    has: Callable[[bytes], bool],
    others: Collection[bytes] = (),
    begun: bool = False,
) -> list[Step]:
    """A step for each change. `now` is what is at their paths, `others` are what Limpet itself wrote meanwhile.

    `begun`: the same was begun before and killed, so a path may also be half-way.
    """
    steps = {change.path: _step(change, now.get(change.path), has=has, others=others) for change in changes}
    if begun:
        steps = {path: _go_on(step) for path, step in steps.items()}
    for path in sorted(steps, key=_depth, reverse=True):
        step = steps[path]
        if _removes_folder(step) and (foreign := _foreign(root, path, steps)):
            steps[path] = structs.replace(step, verdict="changed", why=f"it holds {foreign}, which stays")
    for path in sorted(steps, key=_depth):
        step = steps[path]
        if step.verdict == "restore" and step.before is not None and not _has_parent(root, path, steps):
            steps[path] = structs.replace(step, verdict="changed", why="its folder is not there any more")
    return [steps[path] for path in sorted(steps)]


def _step(change: Change, now: Node | None, *, has: Callable[[bytes], bool], others: Collection[bytes]) -> Step:
    before = change.before
    verdict: Verdict = "restore"
    why = ""
    if same(now, before):
        verdict = "already"
    elif change.path in others:
        verdict, why = "left", "Limpet's own notes were written to it meanwhile"
    elif "closed" in (before and before.kind, now and now.kind):
        verdict, why = "left", "it is not looked into"
    elif not same(now, change.after):
        verdict, why = "changed", "it was changed since"
    elif before is not None and before.kind == "other":
        verdict, why = "lost", "a pipe, socket or device cannot be made again"
    elif before is not None and before.kind == "file" and not before.content:
        verdict, why = "lost", before.lost or "its content is not known"
    elif before is not None and before.kind == "file" and not has(before.content):
        verdict, why = "lost", "its copy is no longer kept"
    return Step(change.path, before, now, verdict, why)


def _go_on(step: Step) -> Step:
    """A path that a killed rollback had emptied for something of another kind, or made with a mode of its own."""
    before, now = step.before, step.now
    emptied = now is None
    made = before is not None and before.kind == "folder" and now is not None and now.kind == "folder"
    if step.verdict == "changed" and before is not None and (emptied or made):
        return structs.replace(step, verdict="restore", why="")
    return step


def _depth(path: bytes) -> int:
    return path.count(b"/")


def _removes_folder(step: Step) -> bool:
    is_folder = step.now is not None and step.now.kind == "folder"
    return step.verdict == "restore" and is_folder and (step.before is None or step.before.kind != "folder")


def _foreign(root: int, path: bytes, steps: dict[bytes, Step]) -> str:
    """Something in a folder that is not about to be removed; empty when there is nothing."""
    try:
        with tree.parent(root, path) as (folder, name):
            fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            names = os.listdir(fd)
        finally:
            os.close(fd)
    except OSError as error:
        return f"something that cannot be read ({error.strerror})"
    for name in sorted(map(os.fsencode, names)):
        step = steps.get(path + b"/" + name)
        if step is None or step.verdict != "restore" or step.before is not None:
            return name.decode("utf-8", "backslashreplace")
    return ""


def _has_parent(root: int, path: bytes, steps: dict[bytes, Step]) -> bool:
    above = path.rpartition(b"/")[0]
    if not above:
        return True
    step = steps.get(above)
    if step is not None and step.verdict == "restore":
        return step.before is not None and step.before.kind == "folder"
    node = tree.look(root, above)
    return node is not None and node.kind == "folder"


def fingerprint(steps: Sequence[Step]) -> str:
    """Names a plan: the same paths, to be made the same out of the same."""
    essence = [(step.path, _essence(step.before), _essence(step.now), step.verdict) for step in steps]
    return hashlib.sha256(msgspec.msgpack.encode(essence)).hexdigest()


def _essence(node: Node | None) -> tuple[str, int, int, bytes] | None:
    return None if node is None else (node.kind, node.mode, node.size, node.content)


def restore(root: int, steps: Sequence[Step], get: Get) -> list[tuple[bytes, str]]:
    """Do the steps that say so. Gives the paths that could not be restored and why. Doing it again changes nothing."""
    todo = [step for step in steps if step.verdict == "restore"]
    failed: dict[bytes, str] = {}

    def attempt(step: Step, act: Callable[[Step, int, bytes], None]) -> None:
        try:
            with tree.parent(root, step.path) as (folder, name), _Writable(folder):
                act(step, folder, name)
        except OSError as error:
            failed[step.path] = error.strerror or str(error)

    for step in sorted(todo, key=lambda step: _depth(step.path), reverse=True):
        if step.now is not None and (step.before is None or step.before.kind != step.now.kind):
            attempt(step, _remove)
    for step in sorted(todo, key=lambda step: _depth(step.path)):
        if step.path not in failed and step.before is not None and step.before.kind == "folder":
            attempt(step, _make_folder)
    for step in todo:
        if step.path not in failed and step.before is not None and step.before.kind in ("file", "link"):
            attempt(step, lambda step, folder, name: _put(step, folder, name, get=get))
    for step in sorted(todo, key=lambda step: _depth(step.path), reverse=True):
        if step.path not in failed and step.before is not None and step.before.kind == "folder":
            attempt(step, _set_mode)
    _sync(root, todo)
    return sorted(failed.items())


class _Writable:
    """While this lasts the open folder can be written by us."""

    def __init__(self, folder: int) -> None:
        self._folder = folder
        self._mode = stat.S_IMODE(os.fstat(folder).st_mode)

    def __enter__(self) -> None:
        if self._mode & 0o300 != 0o300:
            os.fchmod(self._folder, self._mode | 0o700)

    def __exit__(self, *_: object) -> None:
        if self._mode & 0o300 != 0o300:
            os.fchmod(self._folder, self._mode)


def _remove(step: Step, folder: int, name: bytes) -> None:
    assert step.now is not None
    _confirm(step, folder, name)
    if step.now.kind == "folder":
        os.rmdir(name, dir_fd=folder)
    else:
        os.unlink(name, dir_fd=folder)


def _make_folder(step: Step, folder: int, name: bytes) -> None:
    assert step.before is not None
    with suppress(FileExistsError):
        os.mkdir(name, step.before.mode | 0o700, dir_fd=folder)


def _put(step: Step, folder: int, name: bytes, *, get: Get) -> None:
    """Put a file or link in its place in one step."""
    before, now = step.before, step.now
    assert before is not None
    replaces = now is not None and now.kind == before.kind
    if replaces:
        _confirm(step, folder, name)
    if replaces and now is not None and now.content == before.content and before.kind == "file":
        _set_mode(step, folder, name)
        return
    temporary = b".limpet-undo-" + hashlib.sha256(step.path).hexdigest()[:16].encode() + b".tmp"
    with suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=folder)
    try:
        if before.kind == "link":
            os.symlink(before.content, temporary, dir_fd=folder)
        else:
            _write(temporary, folder, get(before.content), mode=before.mode)
        if not replaces:
            _absent(folder, name)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:  # after the rename there is nothing left to remove
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)


def _write(name: bytes, folder: int, data: bytes | None, *, mode: int) -> None:
    if data is None:
        raise OSError(0, "its copy is no longer kept")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(name, flags, 0o600, dir_fd=folder), "wb") as file:
        file.write(data)
        file.flush()
        os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())


def _set_mode(step: Step, folder: int, name: bytes) -> None:
    assert step.before is not None
    kind = os.O_DIRECTORY if step.before.kind == "folder" else os.O_NONBLOCK
    flags = kind | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(name, os.O_RDONLY | flags, dir_fd=folder)
    except PermissionError:
        _set_mode_unread(step.before.mode, os.open(name, getattr(os, "O_PATH", os.O_RDONLY) | flags, dir_fd=folder))
        return
    try:
        os.fchmod(fd, step.before.mode)
    finally:
        os.close(fd)


def _set_mode_unread(mode: int, fd: int) -> None:
    """The same where the present mode does not let us read it, on Linux; takes the descriptor over."""
    try:
        if not stat.S_ISLNK(os.fstat(fd).st_mode):
            os.chmod(f"/proc/self/fd/{fd}", mode)
    finally:
        os.close(fd)


def _absent(folder: int, name: bytes) -> None:
    with suppress(FileNotFoundError):
        os.stat(name, dir_fd=folder, follow_symlinks=False)
        raise OSError(0, "something was put there just now")


def _confirm(step: Step, folder: int, name: bytes) -> None:
    """What is about to be replaced must still be what the plan says."""
    assert step.now is not None
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if status.st_ino != step.now.inode or (step.now.kind == "file" and status.st_mtime_ns != step.now.mtime):
        raise OSError(0, "it was changed just now")


def _sync(root: int, steps: Sequence[Step]) -> None:
    """Make renames last. Some file systems cannot; then they are as durable as these are."""
    for above in {step.path.rpartition(b"/")[0] for step in steps}:
        with suppress(OSError), tree.parent(root, above + b"/." if above else b".") as (folder, _):
            os.fsync(folder)
