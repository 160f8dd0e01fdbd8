"""The skills that the configuration lets be found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from msgspec import convert

from limpet.config.paths import Home, find_workspace, own_folder
from limpet.config.schema import Settings
from limpet.skills.discovery import places
from limpet.skills.gates import Situation
from limpet.skills.shelf import Shelf


def shelf_of(
    settings: Settings,
    home: Home,
    environ: Mapping[str, str],
    *,
    has_tool: Callable[[str], bool] = lambda name: True,
) -> Shelf:
    """The skills there are. `has_tool` says whether Limpet has a tool; it is asked when somebody wants the offered."""
    workspace = str(find_workspace(settings.agent.workspace, home))
    wanted = settings.skills
    here = Situation(
        env=frozenset((*environ, *settings.tools.exec.secrets, *settings.egress.secrets)),
        setting=partial(is_set, settings),
        has_tool=has_tool,
    )
    where = places(workspace, home.root, own=own_folder(environ), extra=wanted.extra, bundled=wanted.bundled)
    return Shelf(where, home.root, workspace=workspace, here=here, disabled=wanted.disabled)


def is_set(settings: Settings, key: str) -> bool:
    """Whether the setting with the dotted `key` is there and neither empty nor false."""
    found: object = settings
    for part in key.split("."):
        found = convert(found, dict[str, object]).get(part) if isinstance(found, dict) else getattr(found, part, None)
    return bool(found)
