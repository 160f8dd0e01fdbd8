"""Whether a skill can be used here: what it asks for and this machine has not."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Collection

from msgspec import Struct

from limpet.skills.skill import Gates

_SYSTEMS = {"macos": "darwin", "osx": "darwin", "windows": "win32"}


class Situation(Struct, frozen=True):
    """What is here. `env` are names of variables that commands can have, `setting` whether a setting is true or set,
    `has_tool` whether there is a tool of that name."""

    env: Collection[str] = ()
    setting: Callable[[str], bool] = lambda key: False
    has_tool: Callable[[str], bool] = lambda name: False
    platform: str = sys.platform
    which: Callable[[str], str | None] = shutil.which


def missing(gates: Gates, here: Situation) -> tuple[str, ...]:
    """What is not there, each as `kind:name`."""
    systems = [_SYSTEMS.get(name.lower(), name.lower()) for name in gates.os]
    found = [f"os:{'|'.join(gates.os)}"] if systems and here.platform not in systems else []
    if gates.skipped:
        return tuple(found)
    found += [f"bin:{name}" for name in gates.bins if not here.which(name)]
    if gates.any_bins and not any(here.which(name) for name in gates.any_bins):
        found.append(f"bin:{'|'.join(gates.any_bins)}")
    found += [f"env:{name}" for name in gates.env if name not in here.env]
    found += [f"config:{key}" for key in gates.config if not here.setting(key)]
    found += [f"tool:{name}" for name in gates.tools if not here.has_tool(name)]
    return tuple(found)
