"""What machine this is. Only facts that stay the same while the process lives."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from msgspec import Struct


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
