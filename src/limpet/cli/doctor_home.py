"""What `limpet doctor` looks at in the home: modes, leftovers, who holds locks, the gateway, the memory's index."""

from __future__ import annotations

import asyncio
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import apsw

from limpet.cli.doctor import Finding, Fix, Level, Situation
from limpet.cli.moments import now_ms
from limpet.cli.status_command import STALE
from limpet.config.agents import agent_names
from limpet.config.load import load_settings
from limpet.config.paths import Home
from limpet.config.schema import Settings
from limpet.config.secrets import STORE
from limpet.config.server_token import TOKEN_FILE
from limpet.errors import ConfigError
from limpet.gateway.status import FILE, Snapshot, read_snapshot
from limpet.gateway.supervisor import Health
from limpet.memory.generations import Generations
from limpet.store import snapshot

LEFT_OVER = 6 * 3600.0
"""Seconds after which a temporary file belongs to nobody who is still at it."""
PRIVATE = (STORE, TOKEN_FILE, "web-password", "limpet.db", "limpet.db-wal", "limpet.db-shm")
_BESIDE = ("", "-wal", "-shm")


async def check_files(situation: Situation) -> list[Finding]:
    """Modes of what is private, folders that are missing, temporary files that were left."""
    home = situation.home
    if not home.root.is_dir():
        return []
    found: list[Finding] = []
    modes = [
        *(Fix("chmod", str(path), 0o600) for path in _private(home) if _is_open(path)),
        *(Fix("chmod", str(path), 0o700) for path in (home.run, home.blobs, home.logs) if _is_open(path)),
    ]
    if modes:
        level: Level = "warning" if _is_open(home.root) else "note"  # behind a closed door it matters little
        text = f"by their mode others may look into {_named(modes)}"
        found.append(Finding("files", level, text, "limpet doctor --fix", "files.mode", tuple(modes)))
    if folders := [Fix("mkdir", str(path), 0o700) for path in (home.run, home.blobs, home.logs) if not path.exists()]:
        text = f"{_named(folders)} is not there; it is made when it is needed"
        found.append(Finding("files", "note", text, "limpet doctor --fix", "files.missing", tuple(folders)))
    if left := [Fix("remove", str(path)) for path in await asyncio.to_thread(lambda: list(_left_over(home)))]:
        text = f"left over: {_named(left)}"
        found.append(Finding("files", "note", text, "limpet doctor --fix", "files.left-over", tuple(left)))
    return found or [Finding("files", "ok", "nobody else may look into them, and nothing is left over")]


def _private(home: Home) -> Iterator[Path]:
    yield from (home.root / name for name in PRIVATE)
    yield from home.root.glob("secrets-*.key")


def _is_open(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False
    return not stat.S_ISLNK(mode) and bool(stat.S_IMODE(mode) & 0o077)


def _named(fixes: list[Fix]) -> str:
    names = [fix.path for fix in fixes]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _left_over(home: Home) -> Iterator[Path]:
    """What those who were killed have left: drafts, unpacked backups, locks and sockets of the dead."""
    candidates = [
        *home.root.glob(".config.toml.*"),
        *home.root.glob(f".{STORE}.*"),
        *home.run.glob(".*.new"),
        *home.root.parent.glob(f".{home.root.name}.restoring-*"),
        *home.root.parent.glob(".limpet-backup-*"),
    ]
    for path in candidates:
        try:
            if time.time() - path.lstat().st_mtime > LEFT_OVER:
                yield path
        except OSError:
            continue
    for lock in home.run.glob("*-*.lock"):
        if not is_held(lock):
            yield from (path for path in (lock, lock.with_suffix(".sock")) if path.exists())


def is_held(lock: Path) -> bool:
    """Whether a living process holds that lock."""
    try:
        fd = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


async def check_locks(situation: Situation) -> list[Finding]:
    """Which processes work in the home, and whether one of them keeps the others from writing."""
    home = situation.home
    owners = [lock.name.partition("-")[0] for lock in home.run.glob("*-*.lock") if is_held(lock)]
    text = f"processes at work here: {', '.join(sorted(owners))}" if owners else "nobody is at work here"
    lock = home.root / "limpet.db.lock"
    for _ in range(10):  # a write takes milliseconds
        if not is_held(lock):
            return [Finding("locks", "ok", text)]
        await asyncio.sleep(0.02)
    holder = lock.read_bytes()[:64].decode(errors="replace").strip() or "unknown"
    remedy = f"See what process {holder.partition('-')[0]} does, or end it."
    return [Finding("locks", "warning", f"{lock} is held for long by {holder}", remedy, "locks.write")]


async def check_gateway(situation: Situation) -> list[Finding]:
    """Whether the gateway runs and its channels are connected."""
    run = situation.home.run
    last = read_snapshot(str(run / FILE))
    if last is None or not is_held(run / f"{last.owner}.lock"):
        return [_no_gateway(situation)]
    process = last.owner.partition("-")[0]
    if now_ms() - last.at > STALE:
        remedy = f"limpet service restart, or kill {process} and start it: nothing is lost."
        return [Finding("gateway", "broken", f"process {process} does not answer", remedy, "gateway.hung")]
    return [Finding("gateway", "ok", f"running, process {process}"), *_channels(last)]


def _no_gateway(situation: Situation) -> Finding:
    settings = settings_or_none(situation)
    wanted = settings is not None and any(
        getattr(settings.channels, kind) for kind in settings.channels.__struct_fields__
    )
    if not wanted:
        return Finding("gateway", "ok", "does not run, and no channel is configured")
    remedy = "limpet service install, or limpet gateway."
    return Finding("gateway", "warning", "channels are configured, and no gateway runs", remedy, "gateway.stopped")


def _channels(last: Snapshot) -> Iterator[Finding]:
    for one in last.channels:
        yield _channel(one)
    for kind, account, why in last.faults:
        text = f"{kind}:{account} cannot be opened: {why}"
        yield Finding("channel", "broken", text, f"See docs/channels/{kind}.md; limpet status.", "channel.fault")


def _channel(one: Health) -> Finding:
    name = f"{one.channel}:{one.account}"
    if one.state == "connected":
        return Finding("channel", "ok", f"{name} is connected")
    why = f": {one.error}" if one.error else ""
    if one.state == "refused":
        return Finding("channel", "broken", f"{name} is refused{why}", "Check its token.", "channel.refused")
    return Finding("channel", "warning", f"{name} is {one.state}{why}", "limpet status", "channel.down")


async def check_index(situation: Situation) -> list[Finding]:
    """Whether the search index of each agent's memory is whole; it is made anew when it is gone."""
    settings = settings_or_none(situation) or Settings()
    found: list[Finding] = []
    for agent in agent_names(settings):
        files = Generations(str(situation.home.index(agent)))
        number = files.newest()
        if not number:
            found.append(Finding("index", "ok", f"{agent}: it will be made when it is needed"))
            continue
        path = files.path(number)
        try:
            faults = await asyncio.to_thread(snapshot.faults, path)
        except apsw.Error as error:
            faults = [str(error)]
        if not faults:
            found.append(Finding("index", "ok", f"{agent}: {path} is whole"))
            continue
        fixes = tuple(Fix("remove", path + one) for one in _BESIDE if os.path.exists(path + one))
        text = f"{agent}: {path} is damaged: {'; '.join(faults[:2])}"
        remedy = "limpet doctor --fix deletes it; it is made anew from notes and conversations."
        found.append(Finding("index", "warning", text, remedy, "index.damaged", fixes))
    return found


def settings_or_none(situation: Situation) -> Settings | None:
    """The settings; None where they are damaged, which `check_config` says."""
    try:
        return load_settings(situation.home.config, situation.environ).settings
    except ConfigError:
        return None
