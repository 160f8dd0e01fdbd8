"""What a command may use, and which of these limits hold on this machine (DESIGN 13)."""

from __future__ import annotations

import os
import sys

from msgspec import Struct


class Limits(Struct, frozen=True):
    """Caps of one command and all its children. Bytes; 0 = no limit.

    `memory` counts the resident memory of the whole tree, `file_size` holds for each file written,
    `output` is what is kept of the output (beginning and end), `scratch` is the size of the private /tmp.
    """

    memory: int = 2 * 1024**3
    processes: int = 256
    file_size: int = 1024**3
    output: int = 8 * 1024**2
    scratch: int = 512 * 1024**2


def holding(*, sandboxed: bool, cgroup: int = 0) -> tuple[str, ...]:
    """The limits that hold here, each in a few words, for `doctor`. `cgroup` is the version usable here, 0 = none."""
    found = ["time: everything is killed when it is over", "output: beginning and end are kept"]
    found.append("file size: RLIMIT_FSIZE")
    if cgroup:
        found.append(f"memory: control group (version {cgroup})")
        found.append(f"processes: control group (version {cgroup}), and a watch on the tree")
    elif os.path.isdir("/proc/self"):
        found.append("memory: RLIMIT_AS, and a watch on the tree (5 times a second)")
        found.append("processes: a watch on the tree")
    else:
        found.append(f"memory: RLIMIT_AS only ({sys.platform} has no /proc to watch)")
        found.append("processes: not limited")
    found.append("network: none but what tools.exec.network opens" if sandboxed else "network: not limited")
    return tuple(found)
