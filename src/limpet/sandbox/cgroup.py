"""A control group for each command, where the system lets us make one: the firm limit of memory and processes.

Version 2 when a group with the controllers `memory` and `pids` was delegated to us (systemd: `Delegate=yes` with
`DelegateSubgroup=`), version 1 for root. Elsewhere the watch of the init stands alone.
"""

from __future__ import annotations

import errno
import os
import time
from contextlib import suppress
from functools import cache

from msgspec import Struct

from limpet.sandbox.limits import Limits

_MOUNT = "/sys/fs/cgroup"
_NAME = "limpet"
_OWN = 32 * 1024**2
"""Bytes for the processes around the command: bubblewrap and the init."""
_THREADS = 4
"""Tasks allowed for each process: a control group counts threads."""
GONE_AFTER = 10
"""Tries to remove a group, 5 ms apart."""
_JOIN = 'for group in $1; do echo $$ > "$group/cgroup.procs"; done 2>/dev/null; shift; exec "$@"'


class Parents(Struct, frozen=True):
    """Folders in which a group can be made: one in version 2, else that of `memory` and that of `pids`."""

    version: int
    folders: tuple[str, ...]


class Group:
    """The group of one command. `remove` it when its processes have ended."""

    def __init__(self, parents: Parents, limits: Limits) -> None:
        name = f"{_NAME}-{os.getpid()}-{os.urandom(4).hex()}"
        self._version = parents.version
        self._folders = [os.path.join(folder, name) for folder in parents.folders]
        try:
            for folder in self._folders:
                os.mkdir(folder)
            memory, pids = self._folders[0], self._folders[-1]
            if limits.memory and self._version == 2:
                _write(memory, "memory.max", limits.memory + _OWN)
                _write(memory, "memory.swap.max", 0)
            elif limits.memory:
                _write(memory, "memory.limit_in_bytes", limits.memory + _OWN)
            if limits.processes:
                _write(pids, "pids.max", limits.processes * _THREADS + 8)
        except OSError:
            self.remove()
            raise

    def prefix(self) -> list[str]:
        """Words before a command line that make it run in the group."""
        return ["/bin/sh", "-c", _JOIN, "sh", " ".join(self._folders)]

    def passed(self) -> str:
        """The limit that killed or refused something, empty when none did."""
        events = "memory.events" if self._version == 2 else "memory.oom_control"
        if _count(os.path.join(self._folders[0], events), "oom_kill"):
            return "memory"
        return "processes" if _count(os.path.join(self._folders[-1], "pids.events"), "max") else ""

    def remove(self) -> None:
        for folder in self._folders:
            for _ in range(GONE_AFTER):
                try:
                    os.rmdir(folder)
                except OSError as error:
                    if error.errno != errno.EBUSY:
                        break
                    time.sleep(0.005)  # the kernel has not let go of the last process yet
                else:
                    break


@cache
def parents() -> Parents | None:
    """Where groups can be made; None where they cannot. Tried once, groups of dead processes are removed."""
    try:
        with open("/proc/self/cgroup") as file:
            lines = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return None
    found = find(lines)
    if found is None:
        return None
    for folder in found.folders:
        _remove_dead(folder)
    try:
        Group(found, Limits()).remove()
    except OSError:
        return None
    return found


def find(lines: list[list[str]], *, mount: str = _MOUNT) -> Parents | None:
    """Where groups might be made, by the split lines of `/proc/self/cgroup`."""
    return _version_2(lines, mount) or _version_1(lines, mount)


def _version_2(lines: list[list[str]], mount: str) -> Parents | None:
    for _, controllers, path in lines:
        if controllers or not os.path.exists(f"{mount}/cgroup.controllers"):
            continue
        own = os.path.normpath(f"{mount}{path}")
        for folder in (own, os.path.dirname(own)):
            with suppress(OSError), open(f"{folder}/cgroup.subtree_control") as file:
                if {"memory", "pids"} <= set(file.read().split()) and os.access(folder, os.W_OK):
                    return Parents(2, (folder,))
    return None


def _version_1(lines: list[list[str]], mount: str) -> Parents | None:
    paths = {controller: path for _, controllers, path in lines for controller in controllers.split(",")}
    folders = tuple(os.path.normpath(f"{mount}/{name}{paths.get(name, '/')}") for name in ("memory", "pids"))
    usable = all(name in paths for name in ("memory", "pids")) and all(os.access(one, os.W_OK) for one in folders)
    return Parents(1, folders) if usable else None


def _remove_dead(folder: str) -> None:
    """Groups whose agent was killed are empty, and its pid is free or another's."""
    with suppress(OSError):
        for name in os.listdir(folder):
            kind, _, rest = name.partition("-")
            if kind == _NAME and not os.path.exists(f"/proc/{rest.partition('-')[0]}"):
                with suppress(OSError):
                    os.rmdir(os.path.join(folder, name))


def _write(folder: str, name: str, value: int) -> None:
    with open(os.path.join(folder, name), "w") as file:
        file.write(str(value))


def _count(path: str, key: str) -> int:
    with suppress(OSError, ValueError), open(path) as file:
        for line in file:
            name, _, value = line.partition(" ")
            if name == key:
                return int(value)
    return 0
