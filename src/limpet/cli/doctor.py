"""What `limpet doctor` looks at. Each check gives findings; each finding that is not fine says what to do."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import stat
import sys
import sysconfig
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct, structs

from limpet.config.load import load_settings
from limpet.config.machine import file_system_of, is_network, this_machine
from limpet.config.paths import WORKSPACE_REMEDY, Home, find_workspace, workspace_fault
from limpet.config.secrets import known_secrets, literal_secrets, resolve, secret_settings, too_short
from limpet.errors import ConfigError, LimpetError

log = logging.getLogger(__name__)

Level = Literal["ok", "note", "warning", "broken"]
DEADLINE = 20.0
"""Seconds that one check may take."""
EARLIEST = 1_767_225_600
"""2026-01-01 in seconds: no clock that is right shows less."""
SOCKET_PATH_LIMIT = 100
"""Bytes; the shortest limit of any system is 104 with its end, and names in `run/` need about 40 of them."""
REQUIRED = ("msgspec", "aiohttp", "apsw", "click", "rich", "prompt_toolkit", "tomlkit", "yaml", "cryptography")


class Fix(Struct, frozen=True, omit_defaults=True):
    """A change that mends something and can lose nothing: the mode of a file, a folder that is missing, a file or
    folder that is left over or made anew by itself.
    """

    act: Literal["chmod", "mkdir", "remove"]
    path: str
    mode: int = 0

    def told(self) -> str:
        """What it does, in a line."""
        if self.act == "chmod":
            return f"chmod {self.mode:o} {self.path}"
        return f"make the folder {self.path}" if self.act == "mkdir" else f"delete {self.path}"


class Finding(Struct, frozen=True, omit_defaults=True):
    """One thing that was looked at. `remedy` says what to do when it is not fine, `fixes` what `--fix` would do.

    `id` stays the same from version to version; empty: that of its check.
    """

    check: str
    level: Level
    text: str
    remedy: str = ""
    id: str = ""
    fixes: tuple[Fix, ...] = ()

    def named(self) -> Finding:
        """The same with its `id`."""
        return structs.replace(self, id=self.id or self.check.replace(" ", "-"))


class Situation(Struct, frozen=True):
    """What checks may look at. `offline`: nothing beyond this machine may be asked."""

    home: Home
    environ: Mapping[str, str]
    offline: bool = False


Check = Callable[[Situation], Awaitable[list[Finding]]]
"""A check may take `DEADLINE` seconds and may raise: both become a finding."""


async def check_machine(situation: Situation) -> list[Finding]:
    machine = this_machine(situation.environ)
    kinds = (("container", machine.container), ("WSL", machine.wsl), ("Termux", machine.termux))
    inside = "".join(f", {name}" for name, there in kinds if there)
    text = f"{machine.system} {machine.release}, {machine.arch}{inside}"
    if machine.termux or machine.system not in ("Linux", "macOS"):
        return [Finding("system", "warning", text, "Not supported yet: use Linux, macOS, or WSL on Windows.")]
    if machine.container:
        remedy = f"Keep {situation.home.root} on a volume, or everything is gone with the container."
        return [Finding("system", "note", text, remedy)]
    return [Finding("system", "ok", text)]


async def check_python(situation: Situation) -> list[Finding]:
    version = f"Python {this_machine(situation.environ).python} at {sys.executable}"
    missing = [name for name in REQUIRED if importlib.util.find_spec(name) is None]
    if missing:
        lacking = f"{version} lacks {', '.join(missing)}"
        return [Finding("python", "broken", lacking, "Install Limpet again: make install, or pip install limpet.")]
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return [Finding("python", "warning", f"{version}, free-threaded", "Use the ordinary build of Python.")]
    return [Finding("python", "ok", version)]


async def check_home(situation: Situation) -> list[Finding]:
    home = situation.home
    root = home.root
    if not root.exists():
        parent = next(path for path in root.parents if path.exists())
        if root.is_symlink() or not parent.is_dir() or not os.access(parent, os.W_OK):
            return [Finding("home", "broken", f"{root} cannot be made", "Set LIMPET_HOME to a folder of your own.")]
        return [Finding("home", "ok", f"{root} will be made when it is needed"), *_file_system(parent)]
    if not root.is_dir() or not os.access(root, os.W_OK | os.X_OK):
        return [Finding("home", "broken", f"{root} is not a writable folder", "Make it yours, or set LIMPET_HOME.")]
    found = [Finding("home", "ok", f"{root} is writable")]
    if stat.S_IMODE(root.stat().st_mode) & 0o077:
        fix = Fix("chmod", str(root), 0o700)
        found = [Finding("home", "warning", f"others may look into {root}", fix.told(), "home.mode", (fix,))]
    if len(os.fsencode(home.run)) + 40 > SOCKET_PATH_LIMIT and not os.path.isdir("/proc/self/fd"):
        remedy = "Set LIMPET_HOME to a folder with a shorter path."
        text = f"{home.run} is too long a path for sockets"
        found.append(Finding("home", "warning", text, remedy, "home.path-length"))
    free = os.statvfs(root)
    megabytes = free.f_bavail * free.f_frsize // 1_000_000
    if megabytes < 200:
        level: Level = "broken" if megabytes < 10 else "warning"
        remedy = "Make room, or move the home: LIMPET_HOME names another folder."
        found.append(Finding("home", level, f"only {megabytes} MB are free at {root}", remedy, "home.disk-space"))
    return [*found, *_file_system(root)]


def _file_system(path: Path) -> list[Finding]:
    """SQLite in WAL mode needs shared memory, which network file systems do not have."""
    kind = file_system_of(path)
    if is_network(kind):
        remedy = "Set LIMPET_HOME to a folder on a local disk; a database on a network file system gets damaged."
        return [Finding("file system", "broken", f"{path} is on {kind}, a network file system", remedy)]
    return [Finding("file system", "ok", f"{path} is on {kind or 'a file system of unknown kind'}")]


async def check_workspace(situation: Situation) -> list[Finding]:
    try:
        settings = load_settings(situation.home.config, situation.environ).settings
    except ConfigError:
        return []  # check_config says it
    path = find_workspace(settings.agent.workspace, situation.home)
    if fault := workspace_fault(path):
        return [Finding("workspace", "broken", fault.rstrip("."), WORKSPACE_REMEDY)]
    state = "is writable" if path.exists() else "will be made when it is needed"
    return [Finding("workspace", "ok", f"{path} {state}")]


async def check_config(situation: Situation) -> list[Finding]:
    path = situation.home.config
    try:
        loaded = load_settings(path, situation.environ)
    except ConfigError as error:
        return [Finding("config", "broken", str(error), error.hint)]
    if not loaded.exists:
        return [Finding("config", "ok", f"{path} does not exist: all defaults are in force")]
    found = [Finding("config", "warning", text, "Correct or remove it.", "config.unknown") for text in loaded.warnings]
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        fix = Fix("chmod", str(path), 0o600)
        found.append(Finding("config", "warning", f"others may read {path}", fix.told(), "config.mode", (fix,)))
    for key in literal_secrets(loaded.table):
        remedy = "Keep it with `limpet secrets set NAME` and write secret:NAME instead (or env:NAME, file:PATH)."
        found.append(Finding("secrets", "warning", f"{key} stands in {path} itself", remedy, "secrets.literal"))
    for key, reference in secret_settings(loaded.table):
        try:
            resolve(reference, key=key, root=situation.home.root, environ=situation.environ)
        except ConfigError as error:
            found.append(Finding("secrets", "broken", str(error), error.hint, "secrets.missing"))
    known = known_secrets(loaded.table, root=situation.home.root, environ=situation.environ)
    for key in too_short(known):
        remedy = "Use a longer one: values under 8 characters are not kept out of logs and messages."
        found.append(Finding("secrets", "warning", f"{key} is too short to be redacted", remedy, "secrets.short"))
    return found or [Finding("config", "ok", f"{path} is fine")]


async def check_clock(situation: Situation) -> list[Finding]:
    now = time.time()
    shown = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    remedy = "Set the clock, and let it be kept (timedatectl set-ntp true; macOS: Date & Time)."
    if now < EARLIEST or now > EARLIEST + 50 * 365 * 86_400:
        return [Finding("clock", "broken", f"the clock says {shown}", remedy)]
    try:
        written = situation.home.database.stat().st_mtime
    except OSError:
        written = now
    if written > now + 3_600:
        return [Finding("clock", "warning", f"the clock says {shown}, but the database was written later", remedy)]
    return [Finding("clock", "ok", shown)]


CHECKS: tuple[Check, ...] = (check_machine, check_python, check_home, check_workspace, check_config, check_clock)


async def examine(situation: Situation, checks: Sequence[Check] = CHECKS) -> list[Finding]:
    """The findings of all `checks`, in their order."""
    return [finding for check in checks for finding in await run_check(check, situation)]


async def run_check(check: Check, situation: Situation) -> list[Finding]:
    """A boundary: a check that fails or hangs is a finding, and the others still run."""
    name = getattr(check, "__name__", "check").removeprefix("check_")
    try:
        async with asyncio.timeout(DEADLINE):
            return await check(situation)
    except LimpetError as error:
        return [Finding(name, "broken", str(error), error.hint)]
    except TimeoutError:
        return [Finding(name, "broken", f"gave no answer within {DEADLINE:g} s", "Try again when the machine is idle.")]
    except Exception as error:
        log.exception("the check %s failed", name)
        return [Finding(name, "broken", f"the check itself failed: {type(error).__name__}: {error}", "Report this.")]
