"""Loading the plug-ins that the owner trusts, and those only: the first place where any of their code runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint
from typing import TypeVar

from limpet.config.schema import PluginsSettings, TrustedPlugin
from limpet.plugins.guarded import guarded
from limpet.plugins.installed import HOOKS, TOOLS, Plugin, find
from limpet.plugins.loaded import Loaded
from limpet.toolkit.hooks import FunctionHook
from limpet.toolkit.schema import FunctionTool

log = logging.getLogger(__name__)
T = TypeVar("T")

_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_LONGEST = 64
"""Characters of a tool's name that all services take."""


def load(settings: PluginsSettings, *, is_taken: Callable[[str], bool], warn: Callable[[str], None]) -> Loaded:
    """Import them. `is_taken` says which names of tools are not free; what cannot be used is told to `warn`.

    Never raises: a plug-in that fails is left out, with its traceback in the log.
    """
    tools: dict[str, FunctionTool] = {}
    hooks: list[FunctionHook] = []
    for name, plugin in _sound(settings.trusted, warn):
        for made in _made(plugin, TOOLS, FunctionTool, warn=warn):
            tool = guarded(made, name, seconds=settings.timeout)
            if fault := _fault(tool, is_taken, tools):
                warn(f"The plug-in {name} has a tool that is left out: {fault}.")
            else:
                tools[tool.name] = tool
        hooks += [hook.named(name) for hook in _made(plugin, HOOKS, FunctionHook, warn=warn)]
    return Loaded(tuple(tools.values()), tuple(hooks))


def why_not(plugin: Plugin | None, trusted: TrustedPlugin) -> str:
    """Why a plug-in is not loaded although it was trusted; empty when it is."""
    if plugin is None:
        return "is trusted but not installed"
    if not plugin.digest:
        return "is not loaded: its files cannot be found"
    if (plugin.version, plugin.digest) != (trusted.version, trusted.digest):
        other = f"version {plugin.version} instead of {trusted.version}" if plugin.version != trusted.version else ""
        return f"is not loaded: it has changed since you trusted it ({other or 'other files'})"
    return ""


def _sound(trusted: Mapping[str, TrustedPlugin], warn: Callable[[str], None]) -> Iterator[tuple[str, Plugin]]:
    """The trusted plug-ins that are as they were when they were trusted."""
    for name in sorted(trusted):
        plugin = find(name)
        why = why_not(plugin, trusted[name])
        if why or plugin is None:
            warn(f"The plug-in {name} {why}. Look at it with `limpet plugins info {name}`.")
        else:
            yield name, plugin


def _made(plugin: Plugin, group: str, kind: type[T], *, warn: Callable[[str], None]) -> Iterator[T]:
    """What the entry points of a group give, each one of `kind` or several in a sequence."""
    for entry in plugin.of(group):
        found = _import(plugin, entry, warn)
        for one in _several(found):
            if isinstance(one, kind):
                yield one
            elif one is not None:
                what = "@tool" if group == TOOLS else "@hook"
                warn(f"The plug-in {plugin.name} offers {entry.value}, which was not made with {what}: left out.")


def _several(found: object) -> Sequence[object]:
    return found if isinstance(found, list | tuple) else (found,)  # pyright: ignore[reportUnknownVariableType]


def _import(plugin: Plugin, entry: EntryPoint, warn: Callable[[str], None]) -> object:
    """What an entry point names; None when importing it fails. A boundary: any code may run here."""
    try:
        return entry.load()
    except (Exception, SystemExit) as error:
        log.exception("plug-in %s failed to load %s", plugin.name, entry.value)
        warn(f"The plug-in {plugin.name} failed to load {entry.value}: {type(error).__name__}: {error}")
        return None


def _fault(tool: FunctionTool, is_taken: Callable[[str], bool], others: Mapping[str, FunctionTool]) -> str:
    """Why a tool cannot be offered; empty when it can. A boundary: its schema is made from its own annotations."""
    if not 0 < len(tool.name) <= _LONGEST or not _CHARACTERS.issuperset(tool.name):
        return f"{tool.name!r} is no name that every model service takes"
    if is_taken(tool.name):
        return f"the name {tool.name} is Limpet's own"
    if tool.name in others:
        return f"another plug-in has a tool {tool.name} already"
    try:
        described = tool.spec.description
    except Exception as error:
        log.exception("the schema of the tool %s", tool.name)
        return f"{tool.name} cannot be described: {type(error).__name__}: {error}"
    return "" if described else f"{tool.name} has no docstring, so no model knows what it is for"
