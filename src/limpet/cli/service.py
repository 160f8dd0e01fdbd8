"""The gateway as a service of the user: the files that systemd and launchd read. Pure; `service_run` talks to them.

What hardens the unit was chosen so that the sandbox of commands still works inside: bubblewrap makes user, mount, PID
and network namespaces and mounts a new `/proc`. So nothing here restricts namespaces, filters `mount`, or mounts
anything over parts of `/proc` (`ProtectKernelTunables`, `ProtectProc` …), for the kernel refuses a new one then.
"""

from __future__ import annotations

import hashlib
import os
import plistlib
import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

MARK = "Written by `limpet service install`"
ALWAYS = ("NoNewPrivileges=yes", "LockPersonality=yes", "RestrictRealtime=yes", "RestrictSUIDSGID=yes")
"""Hardening that needs no namespaces."""
FAMILIES = "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK"
"""bubblewrap brings the loopback up by AF_NETLINK."""
MOUNTS = ("PrivateUsers=yes", "PrivateTmp=yes", "ProtectSystem=strict")
"""Hardening by mounts: of a user's service it is only in force with `PrivateUsers` (systemd.exec(5)), which needs
user namespaces; `service_run.hardens` tries it."""
STOP_SECONDS = 20
"""Turns have `gateway.drain` (6 s) to finish, then what is ready is delivered."""
DEFAULT_ROOT = ".limpet"


class Service(Struct, frozen=True):
    """What is to run. `environ` is set for it; `writable` are the folders it writes to, `logs` where launchd puts its
    output."""

    name: str
    program: tuple[str, ...]
    environ: Mapping[str, str]
    writable: tuple[Path, ...]
    logs: Path


def service_name(root: Path, own: Path) -> str:
    """`limpet` for the usual home below the user's `own` folder, else with a mark of the home."""
    if root == own / DEFAULT_ROOT:
        return "limpet"
    slug = re.sub(r"[^a-z0-9]+", "-", root.name.lower()).strip("-")[:20]
    return f"limpet-{slug or 'home'}-{hashlib.sha256(os.fsencode(root)).hexdigest()[:6]}"


def systemd_unit(service: Service, *, mounts: bool) -> str:
    """The unit of a user. `mounts`: with the hardening that needs user namespaces."""
    hardening = [*ALWAYS, FAMILIES]
    if mounts:
        hardening += [*MOUNTS, *(f"ReadWritePaths={_word(f'-{path}')}" for path in service.writable)]
    environ = [f"Environment={_word(f'{name}={value}')}" for name, value in service.environ.items()]
    return "\n".join(
        [
            f"# {MARK}: see docs/operations.md.",
            "[Unit]",
            f"Description=Limpet, a personal agent ({service.name})",
            "StartLimitIntervalSec=600",
            "StartLimitBurst=20",
            "",
            "[Service]",
            "Type=exec",
            f"ExecStart={' '.join(_argument(word) for word in service.program)}",
            *environ,
            "Restart=always",
            "RestartSec=3",
            "# A fault in the settings is not mended by starting again.",
            "RestartPreventExitStatus=2",
            f"TimeoutStopSec={STOP_SECONDS}",
            "KillMode=mixed",
            "UMask=0077",
            "# A group for each command: the firm limit of its memory and processes (needs systemd 254).",
            "Delegate=memory pids",
            "DelegateSubgroup=gateway",
            *hardening,
            "",
            "[Install]",
            "WantedBy=default.target",
            "",
        ]
    )


def _word(text: str) -> str:
    """One word of a setting: `%` is a specifier there, and blanks divide (systemd.syntax(7))."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("\n", "\\n")
    return f'"{escaped}"'


def _argument(text: str) -> str:
    """One word of a command line, in which `$` is a variable besides."""
    return _word(text).replace("$", "$$")


def launchd_label(name: str) -> str:
    return f"io.limpet.{name}"


def launchd_plist(service: Service) -> bytes:
    """The agent of a user, for launchd."""
    log = str(service.logs / "gateway.log")
    return plistlib.dumps(
        {
            "Label": launchd_label(service.name),
            "ProgramArguments": list(service.program),
            "EnvironmentVariables": dict(service.environ),
            "RunAtLoad": True,
            # Not after exit code 0, which is the user's own wish; a crash has another one.
            "KeepAlive": {"SuccessfulExit": False},
            "ThrottleInterval": 10,
            "ExitTimeOut": STOP_SECONDS,
            "ProcessType": "Adaptive",
            "Umask": 0o077,
            "StandardOutPath": log,
            "StandardErrorPath": log,
        }
    )
