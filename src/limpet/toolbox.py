"""The tools of one process: what a model is told of them by tier, and all that can be called at this moment."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, overload

from msgspec import Struct

from limpet.config import schema
from limpet.net.client import Web
from limpet.prompt.deferral import Choice, chosen
from limpet.prompt.snapshot import tier_for
from limpet.sandbox.limits import Limits as CommandLimits
from limpet.sandbox.network import NO_NETWORK, Network
from limpet.sandbox.run import Sandbox
from limpet.tools.beside import Folders, none_beside
from limpet.tools.builtin import builtin
from limpet.tools.deferred import CallTool, deferrable, is_sought, make_tool_search
from limpet.tools.exec import ExecSettings
from limpet.tools.processes import Processes
from limpet.tools.profiles import missing_in
from limpet.tools.web_search import SearchSettings
from limpet.types.ports import ImageMaker, Sessions, Tool
from limpet.types.profile import Profile
from limpet.types.tool import ToolSpec

if TYPE_CHECKING:
    from limpet.mcp.servers import Servers


class ToolExtras(Struct, frozen=True):
    """What some tools work with that need not be there."""

    images: ImageMaker | None = None
    search: SearchSettings = SearchSettings()
    sessions: Sessions | None = None
    processes: Processes | None = None
    env: tuple[tuple[str, str], ...] = ()
    network: Network = NO_NETWORK
    more: tuple[Tool, ...] = ()
    shown: Folders = none_beside
    found: Callable[[], tuple[Tool, ...]] = tuple


PLAIN = ToolExtras()


class Toolbox(Sequence[Tool]):
    """The tools of this process, in the wording of both tiers; as a sequence, all that can be called at this moment.

    `extras.more` and those of `servers` follow the built-in ones; `extras.found` and those that are `sought` are never
    in a prompt. What it has no room for, and what appears later, is found and called by `tool_search` and `call_tool`.
    Only tools that all of `profiles` have.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        settings: schema.ToolSettings,
        *,
        web: Web | None = None,
        extras: ToolExtras = PLAIN,
        servers: Servers | None = None,
        profiles: Collection[schema.ProfileName] = (),
    ) -> None:
        self._servers = servers
        self._found = extras.found
        self._profiles = profiles
        limits = command_limits(settings.exec)
        make = partial(
            builtin,
            sandbox=sandbox,
            settings=ExecSettings(limits=limits, env=extras.env, network=extras.network, shown=extras.shown),
            images=extras.images,
            web=web,
            search=extras.search,
            processes=extras.processes,
        )
        self.full = self._offered((*make(sessions=extras.sessions), *extras.more))
        self._tiny = self._offered(make(tiny=True))
        search = make_tool_search(lambda: self._all)
        rare = [tool.spec.name for tool in self.full if deferrable(tool)]
        self._ways = self._offered((CallTool(rare=rare), search))
        self._tiny_ways = self._offered((CallTool(), search.tiny()))

    def specs(self, profile: Profile) -> tuple[ToolSpec, ...]:
        """What a model is told of them; nothing when it cannot call tools."""
        if not profile.tools:
            return ()
        tiny = tier_for(profile.window) == "tiny"
        all_of_them, ways = (self._tiny, self._tiny_ways) if tiny else (self.full, self._ways)
        built_in = [tool for tool in all_of_them if not is_sought(tool)]
        choice = Choice(
            built_in=[tool.spec for tool in built_in],
            rare={tool.spec.name for tool in built_in if deferrable(tool)},
            served=[tool.spec for tool in self._served],
            ways=[tool.spec for tool in ways],
            open=self._servers is not None or bool(self._found()) or len(built_in) < len(all_of_them),
        )
        return chosen(choice, profile)

    @property
    def names(self) -> frozenset[str]:
        """Those of Limpet's own tools."""
        return frozenset(tool.spec.name for tool in self.full)

    @property
    def _served(self) -> tuple[Tool, ...]:
        return self._offered(self._servers.tools if self._servers else ())

    @property
    def _all(self) -> tuple[Tool, ...]:
        return (*self.full, *self._ways, *self._served, *self._offered(self._found()))

    def _offered(self, tools: Iterable[Tool]) -> tuple[Tool, ...]:
        return tuple(tool for tool in tools if not missing_in(self._profiles, tool.spec.name))

    def __len__(self) -> int:
        return len(self._all)

    @overload
    def __getitem__(self, index: int) -> Tool: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Tool, ...]: ...

    def __getitem__(self, index: int | slice) -> Tool | tuple[Tool, ...]:
        return self._all[index]

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._all)


def command_limits(settings: schema.ExecSettings) -> CommandLimits:
    """What one command may use."""
    return CommandLimits(memory=settings.memory_mb * 1_000_000, processes=settings.processes, output=settings.output)
