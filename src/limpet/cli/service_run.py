"""Talks to the user's systemd or launchd. Whatever they say goes through here, each with a deadline."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from limpet.cli.service import (
    ALWAYS,
    FAMILIES,
    MARK,
    MOUNTS,
    Service,
    launchd_label,
    launchd_plist,
    systemd_unit,
)
from limpet.config.machine import this_machine
from limpet.errors import UserError

PATIENCE = 60.0
_TRIAL = "import sys; from limpet.sandbox.probe import examine; sys.exit(examine().kind == 'none')"
"""Whether the sandbox works, as an exit code."""


class Told(Struct, frozen=True):
    """How a program ended and what it said."""

    code: int
    out: str


def tell(*command: str) -> Told:
    """Run a program of the system to its end. Raises `UserError` when it cannot be run or does not end."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UserError(f"`{' '.join(command[:3])}` did not end within {PATIENCE:.0f} s.") from None
    except OSError as error:
        raise UserError(f"{command[0]} cannot be run: {error.strerror}.") from None
    return Told(done.returncode, done.stdout.decode("utf-8", "replace").strip())


def must(*command: str) -> str:
    """What it said. Raises `UserError` when it failed."""
    told = tell(*command)
    if told.code:
        raise UserError(f"`{' '.join(command)}` failed: {told.out or f'exit code {told.code}'}")
    return told.out


class Manager(Protocol):
    """What keeps services running."""

    @property
    def file(self) -> Path:
        """The file of the service."""
        ...

    def text(self, service: Service) -> str:
        """What is written there."""
        ...

    def start(self) -> list[str]:
        """Take the file in and run the service, now and at each login; gives what the user should know."""
        ...

    def restart(self) -> None: ...

    def stop(self) -> None:
        """End it and let go of it; the file is still there."""
        ...

    def forget(self) -> None:
        """The file is gone."""
        ...

    def state(self) -> str:
        """A word or two on how it is."""
        ...

    def logs(self, lines: int, *, follow: bool) -> tuple[str, ...]:
        """The command that shows its output."""
        ...


class Systemd:
    """The systemd of the user. `mounts`: see `systemd_unit`."""

    def __init__(self, name: str, *, config: Path, mounts: bool = True) -> None:
        self._unit = f"{name}.service"
        self._mounts = mounts
        self.file = config / "systemd" / "user" / self._unit

    def text(self, service: Service) -> str:
        return systemd_unit(service, mounts=self._mounts)

    def start(self) -> list[str]:
        must("systemctl", "--user", "daemon-reload")
        must("systemctl", "--user", "enable", self._unit)
        must("systemctl", "--user", "restart", self._unit)
        return [] if lingers() else [LINGER]

    def restart(self) -> None:
        must("systemctl", "--user", "restart", self._unit)

    def stop(self) -> None:
        must("systemctl", "--user", "disable", "--now", self._unit)

    def forget(self) -> None:
        must("systemctl", "--user", "daemon-reload")

    def state(self) -> str:
        active = tell("systemctl", "--user", "is-active", self._unit).out
        enabled = tell("systemctl", "--user", "is-enabled", self._unit).out
        return f"{active}, {enabled}" + ("" if lingers() else ", ends when you log out")

    def logs(self, lines: int, *, follow: bool) -> tuple[str, ...]:
        command = ("journalctl", "--user", f"--user-unit={self._unit}", f"--lines={lines}", "--no-pager")
        return (*command, "--follow") if follow else command


LINGER = (
    "It runs while you are logged in. To have it run from the start of the machine on, also when you are not: "
    "loginctl enable-linger"
)


def lingers() -> bool:
    """Whether the user's services run without a login; where that cannot be found out, it is taken for granted."""
    told = tell("loginctl", "show-user", str(os.getuid()), "--property=Linger", "--value")
    return told.code != 0 or told.out != "no"


def hardens(home: Path) -> bool:
    """Whether a unit hardened by mounts starts here, and has a working sandbox of commands inside where there is one
    outside: found out by trying."""
    settings = [f"--property={one}" for one in (*ALWAYS, FAMILIES, *MOUNTS, f"ReadWritePaths=-{home}")]
    run = ("systemd-run", "--user", "--wait", "--quiet", "--collect")
    if tell(*run, *settings, "--", sys.executable, "-c", _TRIAL).code == 0:
        return True
    outside = tell(sys.executable, "-c", _TRIAL).code == 0
    return not outside and tell(*run, *settings, "--", sys.executable, "-c", "").code == 0


class Launchd:
    """The launchd of the user."""

    def __init__(self, name: str, *, own: Path, log: Path) -> None:
        self._label = launchd_label(name)
        self._domain = f"gui/{os.getuid()}"
        self._log = log
        self.file = own / "Library" / "LaunchAgents" / f"{self._label}.plist"

    def text(self, service: Service) -> str:
        return launchd_plist(service).decode()

    def start(self) -> list[str]:
        tell("launchctl", "bootout", f"{self._domain}/{self._label}")  # where an older one runs
        must("launchctl", "bootstrap", self._domain, str(self.file))
        return ["It runs while you are logged in; launchd has no agents of a user without a login."]

    def restart(self) -> None:
        must("launchctl", "kickstart", "-k", f"{self._domain}/{self._label}")

    def stop(self) -> None:
        must("launchctl", "bootout", f"{self._domain}/{self._label}")

    def forget(self) -> None:
        pass

    def state(self) -> str:
        told = tell("launchctl", "print", f"{self._domain}/{self._label}")
        lines = [line.strip() for line in told.out.splitlines() if line.strip().startswith("state =")]
        return lines[0].removeprefix("state = ") if lines else "not loaded"

    def logs(self, lines: int, *, follow: bool) -> tuple[str, ...]:
        return ("tail", "-n", str(lines), *(["-F"] if follow else []), str(self._log))


def missing(environ: Mapping[str, str]) -> UserError | None:
    """Why there is nothing here to install a service into, and what to do; None where there is."""
    machine = this_machine(environ)
    if machine.system == "macOS":
        return None
    if shutil.which("systemctl") and tell("systemctl", "--user", "show-environment").code == 0:
        return None
    if machine.container:
        hint = "Have the container run `limpet gateway`, and let it be restarted: see docs/operations.md."
        return UserError("In this container there is no service manager.", hint=hint)
    if machine.wsl:
        hint = "Write systemd=true below [boot] into /etc/wsl.conf, then wsl --shutdown."
        return UserError("This WSL runs without systemd.", hint=hint)
    if shutil.which("systemctl"):
        hint = "Log in as this user itself (not by su or sudo), or: loginctl enable-linger USER, then log in again."
        return UserError("The systemd of this user cannot be reached.", hint=hint)
    hint = "Have what starts your programs run `limpet gateway`, and start it again when it ends (exit code 2: do not)."
    return UserError("There is neither systemd nor launchd here.", hint=hint)


def is_ours(file: Path) -> bool:
    """Whether there is no file, or one that we wrote."""
    try:
        text = file.read_text("utf-8", "replace")
    except FileNotFoundError:
        return True
    return MARK in text or "<string>io.limpet." in text


def replace_with(command: Sequence[str]) -> None:
    """Become that program."""
    sys.stdout.flush()
    try:
        os.execvp(command[0], list(command))
    except OSError as error:
        raise UserError(f"{command[0]} cannot be run: {error.strerror}.") from None
