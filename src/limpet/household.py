"""The composition root of the gateway: its agents and channels, built from the settings as they are, and anew when
they change."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace

from msgspec import structs

from limpet import wiring
from limpet.assistant.addresses import named
from limpet.channels.kinds import KINDS
from limpet.cli.door import Entrance, Nobody
from limpet.cli.group import Invocation
from limpet.config import schema, webhooks
from limpet.config.agents import MAIN, agent_names, settings_of
from limpet.config.channels import accounts
from limpet.config.load import Loaded
from limpet.config.paths import Home, find_workspace
from limpet.doors import Doors
from limpet.errors import ConfigError, LimpetError
from limpet.gateway import binding
from limpet.gateway.folder import EventFile, EventFolder
from limpet.gateway.gateway import Gateway, Opening, only_one
from limpet.gateway.ground import Ground
from limpet.gateway.home import Notices
from limpet.gateway.status import FILE
from limpet.gateway.watch import Watch
from limpet.schedule import desk, heartbeat
from limpet.schedule.desk import Maker, Timing, Wish
from limpet.schedule.scheduler import Scheduler
from limpet.schedule.zones import users_zone
from limpet.server.channel import ACCOUNT, WebChannel
from limpet.server.channel import NAME as WEB
from limpet.server.channel import SETTINGS as WEB_SETTINGS
from limpet.serving import serving
from limpet.store import peers
from limpet.store.peers import Peer
from limpet.store.sql import Connection
from limpet.types.approval import Approval, Reply
from limpet.types.clock import SystemClock
from limpet.types.hook import GatewayBegan, GatewayEnded, HookEvent
from limpet.types.job import JobChange
from limpet.wiring import State

log = logging.getLogger(__name__)

ANSWERED = 0.5
"""Seconds in which the answer to `/restart` is on its way."""

Opener = Callable[["Household", Home], Opening]


@asynccontextmanager
async def open_gateway(
    invocation: Invocation,
    doors: Opener | None = None,
    *,
    entrance: Entrance | None = None,
    beside: Callable[[Opening], Opening] = lambda usual: usual,
) -> AsyncGenerator[Gateway]:
    """The gateway of a home, until the block ends. Raises `UserError`, `StoreError`.

    `doors` gives the channels instead of those that are configured. What a program brings stands in `entrance` (model,
    tools) and `beside` (channels with the usual ones).
    """
    home, loaded, watch = invocation.home(), invocation.settings(), Watch()
    wiring.prepare(loaded.settings, home, emit=watch.emit)
    async with AsyncExitStack() as stack:
        stack.enter_context(only_one(str(home.run)))
        state = await wiring.open_state(stack, home, loaded.settings.store)
        entrance = entrance or Entrance(watch.emit, Nobody())
        agents = Household(home, loaded, state, watch=watch, entrance=entrance, read=invocation.read)
        stack.push_async_callback(agents.close)
        await agents.forget_owners()
        ground = Ground(state.store, state.owner, state.nudges, SystemClock(), agents)
        web = WebChannel()
        usual = Doors(lambda: agents.settings, home, web, state.store)
        opening = doors(agents, home) if doors else beside(usual)
        agents.kinds = (*KINDS, *(kind for kind, _ in opening.configured()))
        agents.check(loaded.settings)
        gateway = Gateway(ground, opening, watch, status=str(home.run / FILE), restarting=agents.restarting)
        async with (
            serving(gateway, agents, home, web=web),
            _scheduling(gateway, agents),
            _watching(gateway, agents, ground),
            _told(gateway, agents),
        ):
            yield gateway


@asynccontextmanager
async def _watching(gateway: Gateway, agents: Household, ground: Ground) -> AsyncGenerator[None]:
    """The event folder beside the gateway."""

    def plan(connection: Connection, file: EventFile, job: str) -> JobChange:
        settings = agents.settings
        wish = Wish(
            text=file.said,
            timing=Timing(file.at, file.every, file.cron, file.zone),
            name=file.name,
            says=file.kind == "remind",
            where="main" if file.session == "main" else "isolated",
            delivery=None if file.deliver else "none",
            address=named(connection, file.to, targets=settings.webhooks.targets) if file.to else None,
            model=file.model,
        )
        maker = Maker(file.agent, zone=users_zone(settings.user.timezone))
        return desk.make(connection, wish, maker, now=SystemClock().now(), id=job)

    root, notices = str(agents.home.root / "events"), Notices(ground)
    folder = EventFolder(root, ground, gateway.outside, notices=notices, plan=plan)
    task = asyncio.create_task(folder.run(), name="event folder")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def _told(gateway: Gateway, agents: Household) -> AsyncGenerator[None]:
    """Hooks hear of the gateway's begin and end."""
    await agents.tell(GatewayBegan(tuple(dict.fromkeys(kind for kind, _ in gateway.wanted))))
    try:
        yield
    finally:
        await agents.tell(GatewayEnded())


@asynccontextmanager
async def _scheduling(gateway: Gateway, agents: Household) -> AsyncGenerator[None]:
    """The scheduler beside the gateway: what is due begins a turn in its lanes."""
    state = agents.state

    def workspace(agent: str) -> str:
        return str(find_workspace(settings_of(agents.settings, agent).agent.workspace, agents.home))

    scheduler = Scheduler(
        state.store,
        state.nudges,
        SystemClock(),
        places=lambda: agents.settings.schedule.parallel,
        poke=gateway.lanes.poke,
        special=heartbeat.Beats(lambda: agents.settings.heartbeat, workspace),
    )
    await agents.keep_heartbeats()
    task = asyncio.create_task(scheduler.run(), name="schedule")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class OwnerAsker:
    """Implements the port `Asker`: whether the owner can be asked in a chat. The asking is the gateway's business."""

    def __init__(self, household: Household) -> None:
        self._household = household

    @property
    def can_ask(self) -> bool:
        return self._household.has_owner

    async def ask(self, approval: Approval) -> Reply | None:
        return None


@dataclass(slots=True)
class _Agent:
    """The services of an agent as they were built last. They end when they are `old` and nobody uses them."""

    stack: AsyncExitStack
    services: wiring.Services
    users: int = 0
    old: bool = False


@dataclass(slots=True)
class Household:
    """Implements the port `Agents`: each is built when it is first used, and anew after a change.

    `read` gives the settings as they are now; `entrance` is what all agents have in common.
    """

    home: Home
    loaded: Loaded
    state: State
    watch: Watch
    entrance: Entrance
    read: Callable[[], Loaded]
    restarting: asyncio.Event = field(default_factory=asyncio.Event)
    kinds: tuple[str, ...] = ()
    _agents: dict[str, _Agent] = field(default_factory=dict[str, _Agent])
    _outdated: list[_Agent] = field(default_factory=list[_Agent])
    _seen: str = ""

    def __post_init__(self) -> None:
        self._seen = self._fingerprint()

    @property
    def settings(self) -> schema.Settings:
        return self.loaded.settings

    @property
    def names(self) -> tuple[str, ...]:
        return agent_names(self.settings)

    @property
    def has_hooks(self) -> bool:
        return bool(self.settings.hooks or self.settings.plugins.trusted)

    @property
    def has_owner(self) -> bool:
        own = accounts(self.settings.channels).values()
        return any(one.owners for one in own) or bool(self.state.store.read(peers.owners))

    @asynccontextmanager
    async def use(self, agent: str) -> AsyncGenerator[wiring.Services]:
        found = await self._find(agent)
        found.users += 1
        try:
            yield found.services
        finally:
            found.users -= 1
            await self._end_outdated()

    async def tell(self, event: HookEvent, agent: str = MAIN) -> None:
        if not self.has_hooks:
            return
        try:
            async with self.use(agent) as services:
                if services.hooks is not None:
                    await services.hooks.tell(event)
        except LimpetError as error:
            log.warning("hooks were not told: %s", error)

    async def _find(self, agent: str) -> _Agent:
        while agent not in self._agents:
            loaded = self.loaded
            wiring.prepare(settings_of(loaded.settings, agent), self.home, emit=self.watch.emit)
            async with AsyncExitStack() as stack:
                entrance = structs.replace(
                    self.entrance,
                    emit=self.watch.emit,
                    approvals=OwnerAsker(self),
                    agent=agent,
                    announce=False,
                    stays=True,
                )
                services = await wiring.open_agent(stack, loaded, home=self.home, entrance=entrance, state=self.state)
                # Meanwhile somebody else may have been faster, or the settings changed: then ours ends with the stack.
                if agent not in self._agents and loaded is self.loaded:
                    rules = structs.replace(services.rules, restart=self._restart)
                    self._agents[agent] = _Agent(stack.pop_all(), replace(services, rules=rules))
        return self._agents[agent]

    def check(self, settings: schema.Settings) -> None:
        """Raises `ConfigError` for a binding or channel that could never do what it says."""
        names = agent_names(settings)
        binding.check(settings.gateway.bindings, agents=names, kinds=tuple(dict.fromkeys(self.kinds)))
        webhooks.check(settings.webhooks, agents=names, server=settings.gateway.token)
        for (kind, account), one in accounts(settings.channels).items():
            if one.agent not in names:
                where = f"channels.{kind}.{account}.agent"
                raise ConfigError(f"{where}: there is no agent {one.agent}.", hint=f"There are: {', '.join(names)}.")

    def _restart(self) -> None:
        """Begin anew, once whoever asked for it has been answered."""
        asyncio.get_running_loop().call_later(ANSWERED, self.restarting.set)

    async def refresh(self) -> bool:
        seen = self._fingerprint()
        if seen == self._seen:
            return False
        try:
            loaded = self.read()
            if self.loaded.exists and not loaded.exists:
                raise ConfigError(f"{self.home.config} is gone.", hint="Put it back, or restart for all defaults.")
            self.check(loaded.settings)
        except ConfigError:
            self._seen = seen  # told once; what else goes wrong is tried again
            raise
        self.loaded = loaded
        for one in self._agents.values():
            one.old = True
        self._outdated += self._agents.values()
        self._agents.clear()
        await self._end_outdated()
        await self.forget_owners()
        await self.keep_heartbeats()
        self._seen = seen
        log.info("the settings or the owner's accounts have changed, and are used from now on")
        return True

    def _fingerprint(self) -> str:
        """Of all that agents are built from: the file as it lies there, and who the owner is."""
        try:
            found = os.stat(self.home.config)
            file = (found.st_mtime_ns, found.st_size, found.st_ino)
        except OSError:
            file = (0, 0, 0)
        owners = sorted(_who(one) for one in self.state.store.read(peers.owners) if one.by != peers.CONFIGURED)
        return repr((file, owners))

    async def forget_owners(self) -> None:
        """Those whom the settings name no more. Who has the server's token always is one."""
        named = {**accounts(self.settings.channels), (WEB, ACCOUNT): WEB_SETTINGS}.items()
        known = {(kind, account, one) for (kind, account), own in named for one in own.owners}
        await self.state.store.write(lambda connection: peers.keep_configured(connection, known))

    async def keep_heartbeats(self) -> None:
        """Have each agent's heartbeat be as the settings want it."""
        wanted, now = self.settings.heartbeat, SystemClock().now()
        zone = users_zone(self.settings.user.timezone)
        for agent in self.names:
            one = heartbeat.job(wanted, agent=agent, zone=zone)
            await self.state.store.write(
                lambda connection, one=one: heartbeat.sync(connection, one, on=wanted.minutes > 0, now=now)
            )

    async def _end_outdated(self) -> None:
        ended = [one for one in self._outdated if not one.users]
        self._outdated = [one for one in self._outdated if one.users]
        for one in ended:
            await one.stack.aclose()

    async def close(self) -> None:
        for one in (*self._outdated, *self._agents.values()):
            await one.stack.aclose()
        self._outdated.clear()
        self._agents.clear()


def _who(peer: Peer) -> tuple[str, str, str]:
    return peer.channel, peer.account, peer.id
