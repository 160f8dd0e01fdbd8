"""Processes of commands that outlived an agent: told from all others for sure, and ended.

A command's init ends everything when its agent dies. What is left is what was there when the init itself was killed.
A process counts as one of the command's when its pid *and* its birth are those that were recorded, when it carries the
command's mark in its environment, or when it descends from such a one. A pid alone never counts: they come again.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress

from msgspec import Struct

MARK = "LIMPET_COMMAND"
"""The environment variable of commands on the host that holds their mark."""
_ROUNDS = 20
_PATIENCE = 5.0


class Trace(Struct, frozen=True):
    """What was recorded of a command when it was started. `mark` is empty where it carries none."""

    pid: int
    birth: str
    mark: str = ""


class _Seen(Struct, frozen=True):
    parent: int
    group: int
    birth: str


def birth(pid: int) -> str:
    """When the process `pid` began, as this machine tells it; empty when there is none. Equal for no other process."""
    found = _look(pid) if _has_procfs() else _listed(pid).get(pid)
    return found.birth if found else ""


def end_survivors(trace: Trace) -> int:
    """Kill what is left of a command; how many processes that were. Never our own ones and those above us."""
    signalled: set[tuple[int, str]] = set()
    for number in (signal.SIGSTOP, signal.SIGKILL):  # stopped first, or they multiply faster than they are found
        for _ in range(_ROUNDS):
            fresh = {victim for victim in _victims(trace) if number == signal.SIGKILL or victim not in signalled}
            for pid, began in fresh:
                _signal(pid, began, number)
            signalled |= fresh
            if not fresh:
                break
    return len(signalled)


def _victims(trace: Trace) -> set[tuple[int, str]]:
    seen = _all()
    spared, own_group = _above(seen), os.getpgrp()
    found = {pid for pid, one in seen.items() if pid == trace.pid and trace.birth and one.birth == trace.birth}
    if trace.mark:
        found |= {pid for pid in seen if _carries(pid, trace.mark)}
    grown = True
    while grown:
        more = {pid for pid, one in seen.items() if one.parent in found} - found
        found |= more
        grown = bool(more)
    return {(pid, seen[pid].birth) for pid in found - spared if seen[pid].group != own_group and pid > 1}


def _above(seen: dict[int, _Seen]) -> set[int]:
    """This process and all that it descends from."""
    chain: set[int] = set()
    pid = os.getpid()
    while pid in seen and pid not in chain:
        chain.add(pid)
        pid = seen[pid].parent
    return chain


def _signal(pid: int, began: str, number: signal.Signals) -> None:
    """Signal the process that was seen, and no other that has come to have its pid."""
    with suppress(OSError):
        if not hasattr(os, "pidfd_open"):
            if birth(pid) == began:
                os.kill(pid, number)
            return
        handle = os.pidfd_open(pid)
        try:
            if birth(pid) == began:  # the handle is of whoever has the pid now
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


def _all() -> dict[int, _Seen]:
    if not _has_procfs():
        return _listed()
    found = {int(name): _look(int(name)) for name in os.listdir("/proc") if name.isdigit()}
    return {pid: one for pid, one in found.items() if one is not None}


def _has_procfs() -> bool:
    return os.path.isdir("/proc/self")


def _look(pid: int) -> _Seen | None:
    """By `/proc`. The birth is in ticks since the boot, so that boot belongs to it."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read().strip()
    except OSError:
        return None
    if fields[0] in (b"Z", b"X"):
        return None
    return _Seen(parent=int(fields[1]), group=int(fields[2]), birth=f"{boot}:{fields[19].decode()}")


def _carries(pid: int, mark: str) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return f"{MARK}={mark}".encode() in file.read().split(b"\0")
    except OSError:
        return False


def _listed(pid: int = 0) -> dict[int, _Seen]:
    """By `ps`, where there is no `/proc` (macOS)."""
    which = ["-p", str(pid)] if pid else ["-ax"]
    command = ["/bin/ps", *which, "-o", "pid=,ppid=,pgid=,lstart="]
    try:
        done = subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, timeout=_PATIENCE, env={"LC_ALL": "C"}
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    found: dict[int, _Seen] = {}
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        fields = line.split(None, 3)
        if len(fields) == 4:
            found[int(fields[0])] = _Seen(parent=int(fields[1]), group=int(fields[2]), birth=fields[3].strip())
    return found
