"""What machine this is, and what about it may go wrong. Nothing here raises or starts a process."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

NETWORK_TYPES = frozenset(
    ("nfs", "nfs4", "cifs", "smb3", "smbfs", "afpfs", "webdav", "davfs", "9p", "drvfs", "afs", "ceph", "lustre", "gfs2")
)
LOCAL_FUSE = ("fuse.fuse-overlayfs", "fuse.lxcfs", "fuse.ext4")


class Machine(Struct, frozen=True):
    """`system` is `Linux`, `macOS` or `Windows`; `release` is the kernel's."""

    system: str
    arch: str
    release: str
    python: str
    container: bool = False
    wsl: bool = False
    termux: bool = False


def this_machine(environ: Mapping[str, str]) -> Machine:
    """Looks at `os.uname()` and a few marker files; never raises, starts no process."""
    name, arch, release = ("Windows", "", "")
    if sys.platform != "win32":
        uname = os.uname()
        name, arch, release = uname.sysname, uname.machine, uname.release
    marked = any(os.path.exists(path) for path in ("/.dockerenv", "/run/.containerenv"))
    return Machine(
        system="macOS" if name == "Darwin" else name,
        arch=arch,
        release=release,
        python=f"{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}",
        container=marked or bool(environ.get("container") or environ.get("KUBERNETES_SERVICE_HOST")),
        wsl="microsoft" in release.lower(),
        termux="com.termux" in environ.get("PREFIX", ""),
    )


def is_network(kind: str) -> bool:
    """Whether a file system of this type lacks the shared memory that SQLite's WAL mode needs."""
    return kind in NETWORK_TYPES or (kind.startswith("fuse.") and kind not in LOCAL_FUSE)


def file_system_of(path: Path, *, mounts: str = "/proc/self/mountinfo") -> str:
    """The type of the file system that holds `path`, from the kernel's list of mounts; empty when it is not known."""
    try:
        lines = Path(mounts).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    real = os.path.realpath(path)
    best, kind = "", ""
    for line in lines:
        before, _, after = line.partition(" - ")
        fields = before.split()
        if len(fields) < 5 or not after:
            continue
        point = fields[4].replace("\\040", " ")
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):  # the later of two on one point hides the earlier
            best, kind = point, after.split()[0]
    return kind


def start_warnings(root: Path, environ: Mapping[str, str]) -> list[str]:
    """What should be said at every start, each with its remedy; under a millisecond. `limpet doctor` looks closer."""
    found: list[str] = []
    machine = this_machine(environ)
    if machine.termux or machine.system not in ("Linux", "macOS"):
        found.append(f"{'Termux' if machine.termux else machine.system} is not supported yet: use Linux, macOS or WSL.")
    if is_network(kind := file_system_of(root)):
        found.append(
            f"{root} is on {kind}, where a database gets damaged: set LIMPET_HOME to a folder on a local disk."
        )
    return found
