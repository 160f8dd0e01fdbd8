"""The composition root: builds the object graph of one process from its settings, and ends it again.

`app` starts the program and must stay light; everything is imported here, when a command needs the assistant.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, overload

from msgspec import Struct, structs

from limpet.agent.execute import PathLocks
from limpet.agent.limits import Limits
from limpet.assistant.elsewhere import Elsewhere
from limpet.assistant.redacted import Redacted
from limpet.assistant.services import Keeping, Resets, Services
from limpet.assistant.weigh import Weights
from limpet.cli.door import Entrance
from limpet.cli.group import Invocation
from limpet.config import schema
from limpet.config.load import Loaded
from limpet.config.machine import start_warnings, this_machine
from limpet.config.paths import Home, find_workspace, prepare_home, prepare_workspace, private_files
from limpet.config.secrets import SecretRedactor, known_secrets, resolve
from limpet.errors import LimpetError
from limpet.llm.build import build
from limpet.llm.choose import Choice, ProviderSettings, choose
from limpet.llm.configured import model_settings
from limpet.llm.failover import Candidate, Failover
from limpet.llm.http import Deadlines, Http
from limpet.llm.local import checked
from limpet.llm.media.studio import Studio
from limpet.llm.wire.service import Witness
from limpet.memory.notes import WorkspaceNotes
from limpet.net.client import Web
from limpet.net.guard import Guard, NetworkRules
from limpet.prompt.bootstrap import WorkspaceFiles
from limpet.prompt.folders import folder_notes
from limpet.prompt.runtime import day_start, local_moment, runtime_block
from limpet.prompt.sections import PromptContext
from limpet.prompt.snapshot import build as build_prompt
from limpet.prompt.snapshot import changed, rebuild_reason, tier_for
from limpet.prompt.templates import seed_workspace
from limpet.sandbox.limits import Limits as CommandLimits
from limpet.sandbox.run import Sandbox
from limpet.session import keys
from limpet.session.resets import Reset, due
from limpet.store import usage
from limpet.store.blobs import BlobStore
from limpet.store.budgets import Budgets
from limpet.store.driver import Store, StoreSettings
from limpet.store.learned import StoredLessons
from limpet.store.nudge import Nudges
from limpet.store.owner import Owner
from limpet.store.rests import StoredRests
from limpet.store.traces import StoredTraces
from limpet.store.usage import UsageMeter
from limpet.tools.builtin import builtin
from limpet.tools.exec import ExecSettings
from limpet.tools.policy import BuiltinPolicy
from limpet.tools.web_search import SearchSettings
from limpet.types.entry import Note, PromptEntry
from limpet.types.envelope import InboxRow
from limpet.types.event import Notice
from limpet.types.ports import Blobs, Clock, Emit, ImageMaker, Meter, Model, Sessions, Tool
from limpet.types.profile import Profile
from limpet.types.tool import ToolSpec
from limpet.undo.copies import Copies
from limpet.undo.keeper import Keeper, Retention
from limpet.undo.tree import Limits as UndoLimits

if TYPE_CHECKING:
    from limpet.llm.media.desk import Desk
    from limpet.mcp.servers import Servers


class SystemClock:
    """The `Clock` of the machine."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


class ModelShelf:
    """The `Models` of this process: each one is built when it is first asked for, and closed at the end.

    One model is a `Failover` over its keys, and over the fallbacks where they may stand in for it.
    """

    def __init__(
        self,
        loaded: Loaded,
        home: Home,
        entrance: Entrance,
        *,
        redactor: SecretRedactor,
        store: Store,
        blobs: Blobs,
        meter: Meter,
    ) -> None:
        self._settings = model_settings(loaded.settings, home.root, os.environ)
        self._fallbacks = loaded.settings.models
        self._announce = entrance.announce and not entrance.model
        self._emit = entrance.emit
        self._rests = StoredRests(store)
        clock = SystemClock()
        self._witness = Witness(StoredLessons(store, clock, redactor), StoredTraces(store, clock, redactor))
        self._redactor = redactor
        self._blobs = blobs
        self._meter = meter
        self._deadlines = _deadlines(loaded.settings.llm)
        self._local_factor = loaded.settings.llm.local_factor
        self._models: dict[str, Model] = {}

    async def desk(self, reference: str) -> Desk:
        """Where a model for sound or pictures is asked, with each of its keys."""
        from limpet.llm.media.desk import Desk, Endpoint

        choice = await choose(self._settings, os.environ, named=reference)
        provider = choice.profile.provider
        own = self._settings.providers.get(provider, ProviderSettings())
        # The whole answer is made before its first byte comes.
        deadlines = structs.replace(self._deadlines, first_byte=self._deadlines.total)
        endpoints = [
            Endpoint(choice.profile, key, Http(provider, deadlines=deadlines, headers=own.headers), credential)
            for key, credential in _credentials(choice, own)
        ]
        return Desk(endpoints, meter=self._meter, rests=self._rests, clock=SystemClock(), emit=self._emit)

    async def get(self, reference: str) -> Model:
        if reference not in self._models:
            choice = await choose(self._settings, os.environ, named=reference)
            if self._announce and not reference:
                self._emit(Notice(choice.reason))
            kept = bool(reference) and not self._fallbacks.replace_chosen
            candidates = await self._candidates(choice, () if kept else self._fallbacks.fallbacks)
            stand_ins = self._fallbacks.fallbacks if kept else ()
            model = candidates[0].model
            if len(candidates) > 1 or stand_ins:
                model = Failover(candidates, rests=self._rests, clock=SystemClock(), stand_ins=stand_ins)
            self._models[reference] = Redacted(model, self._redactor)
        return self._models[reference]

    async def _candidates(self, choice: Choice, fallbacks: Sequence[str]) -> list[Candidate]:
        """The model with each of its keys, then the fallbacks with theirs."""
        choices = [choice]
        for reference in fallbacks:
            try:
                choices.append(await choose(self._settings, os.environ, named=reference))
            except LimpetError as error:
                self._emit(Notice(f"The fallback {reference} cannot be used: {error}", level="warning"))
        return [candidate for one in choices for candidate in await self._with_keys(one)]

    async def _with_keys(self, choice: Choice) -> list[Candidate]:
        profile, warning = await checked(choice.profile, key=choice.key)
        if warning:
            self._emit(Notice(warning, level="warning"))
        own = self._settings.providers.get(profile.provider, ProviderSettings())
        return [
            Candidate(
                build(
                    structs.replace(choice, profile=profile, key=key),
                    blobs=self._blobs,
                    meter=self._meter,
                    deadlines=self._deadlines,
                    local_factor=self._local_factor,
                    headers=own.headers,
                    witness=self._witness,
                ),
                credential,
            )
            for key, credential in _credentials(choice, own)
        ]

    async def close(self) -> None:
        for model in self._models.values():
            await model.close()


def _credentials(choice: Choice, own: ProviderSettings) -> list[tuple[str, str]]:
    """Each key of the choice's provider, with the name under which it rests."""
    provider = choice.profile.provider
    names = (provider, *(f"{provider}#{number}" for number in range(2, 2 + len(own.further_keys))))
    return list(zip((choice.key, *own.further_keys), names, strict=True))


class WorkspacePrompting:
    """The `Prompting` over the files of a workspace."""

    def __init__(
        self,
        workspace: str,
        settings: schema.Settings,
        entrance: Entrance,
        *,
        redactor: SecretRedactor,
        clock: Clock,
        tools: Toolbox,
    ) -> None:
        self._workspace = workspace
        self._files = WorkspaceFiles(workspace)
        self._settings = settings
        self._conversation = entrance.conversation
        self._emit = entrance.emit
        self._redact = redactor.redact
        self._clock = clock
        self._tools = tools

    def snapshot(self, profile: Profile, *, reason: str, before: str = "") -> PromptEntry:
        today = local_moment(self._clock.now(), self._settings.user.timezone).date()
        context = PromptContext(
            workspace=self._workspace,
            machine=this_machine(os.environ),
            window=profile.window,
            mode="full" if profile.tools else "none",
            conversation=self._conversation,
            days=(f"{today - timedelta(days=1)}", f"{today}"),
            before=before,
            file_cap=self._settings.prompt.file_cap,
            total_cap=self._settings.prompt.total_cap,
        )
        built = build_prompt(context, self._tools.specs(profile), model=profile.reference, reason=reason)
        for warning in built.warnings:
            self._emit(Notice(warning, level="warning"))
        sections = tuple(structs.replace(section, text=self._redact(section.text)) for section in built.entry.sections)
        return structs.replace(built.entry, sections=sections)

    def changes(self, snapshot: PromptEntry, told: Sequence[Note]) -> list[Note]:
        notes = changed(snapshot, self._files, told=told)
        return [structs.replace(note, text=self._redact(note.text)) for note in notes]

    def folders(self, paths: Iterable[str], told: Sequence[Note]) -> list[Note]:
        notes = folder_notes(self._files, self._workspace, paths, told=told)
        return [structs.replace(note, text=self._redact(note.text)) for note in notes]

    def stale(self, snapshot: PromptEntry) -> str:
        return rebuild_reason(snapshot, self._workspace)

    def runtime(self, row: InboxRow, facts: Sequence[str] = ()) -> str:
        address = row.inbound.address
        return runtime_block(
            self._clock.now(),
            self._settings.user.timezone,
            channel=address.channel,
            chat=address.chat if address.channel != "cli" else "",
            sender=row.inbound.sender,
            facts=facts,
        )


class ToolExtras(Struct, frozen=True):
    """What some tools work with that need not be there."""

    images: ImageMaker | None = None
    search: SearchSettings = SearchSettings()
    sessions: Sessions | None = None


PLAIN = ToolExtras()


class Toolbox(Sequence[Tool]):
    """The tools of this process, in the wording of both tiers; as a sequence, all that can be called at this moment.

    Those of `servers` follow the built-in ones, and are not for small windows.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        settings: schema.ToolSettings,
        *,
        web: Web | None = None,
        extras: ToolExtras = PLAIN,
        servers: Servers | None = None,
    ) -> None:
        self._servers = servers
        limits = CommandLimits(
            memory=settings.exec.memory_mb * 1_000_000,
            processes=settings.exec.processes,
            output=settings.exec.output,
        )
        make = partial(
            builtin,
            sandbox=sandbox,
            settings=ExecSettings(limits=limits),
            images=extras.images,
            web=web,
            search=extras.search,
        )
        self.full = make(sessions=extras.sessions)
        self._tiny = make(tiny=True)

    def specs(self, profile: Profile) -> tuple[ToolSpec, ...]:
        """What a model is told of them; nothing when it cannot call tools."""
        if not profile.tools:
            return ()
        return tuple(tool.spec for tool in (self._tiny if tier_for(profile.window) == "tiny" else self._all))

    @property
    def _all(self) -> tuple[Tool, ...]:
        return (*self.full, *(self._servers.tools if self._servers else ()))

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


@asynccontextmanager
async def open_assistant(invocation: Invocation, entrance: Entrance) -> AsyncGenerator[Services]:
    """The services of one process, until the block ends. Raises `UserError`, `StoreError`."""
    loaded, home = invocation.settings(), invocation.home()
    settings = loaded.settings
    prepare_home(home)
    for warning in start_warnings(home.root, os.environ):
        entrance.emit(Notice(warning, level="warning"))
    workspace = find_workspace(settings.agent.workspace, home)
    seed_workspace(str(workspace), bootstrap=prepare_workspace(workspace))
    redactor = SecretRedactor(known_secrets(loaded.table, root=home.root, environ=os.environ))
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        owner, store, nudges = await _open_state(stack, home, settings.store)
        blobs = BlobStore(str(home.blobs), store)
        sandbox = Sandbox(hidden=(str(home.root),), enabled=settings.tools.sandbox.mode == "auto")
        stack.push_async_callback(sandbox.close)
        meter = _meter(settings, store, owner, clock=clock)
        models = ModelShelf(loaded, home, entrance, redactor=redactor, store=store, blobs=blobs, meter=meter)
        stack.push_async_callback(models.close)
        studio = Studio(settings.models.purposes, models.desk)
        stack.push_async_callback(studio.close)
        web = Web(_guard(settings.net), proxy=settings.net.proxy)
        stack.push_async_callback(web.close)
        elsewhere = Elsewhere(store, redactor, visibility=settings.sessions.visibility)
        servers = await _open_servers(stack, settings, home, emit=entrance.emit)
        extras = _extras(settings, home, studio, sessions=elsewhere)
        tools = Toolbox(sandbox, settings.tools, web=web, extras=extras, servers=servers)
        undo = _keeper(settings.undo, home, str(workspace), clock=clock)
        stack.callback(undo.close)
        yield Services(
            agent=entrance.agent,
            workspace=str(workspace),
            store=store,
            owner=owner,
            nudges=nudges,
            clock=clock,
            models=models,
            prompting=WorkspacePrompting(
                str(workspace), settings, entrance, redactor=redactor, clock=clock, tools=tools
            ),
            notes=WorkspaceNotes(str(workspace), lambda at: local_moment(at, settings.user.timezone)),
            weights=Weights(),
            tools=tools,
            policy=servers.policy(BuiltinPolicy(sandbox)) if servers else BuiltinPolicy(sandbox),
            approvals=entrance.approvals,
            redactor=redactor,
            blobs=blobs,
            limits=_limits(settings.agent.limits),
            purposes=settings.models.purposes,
            studio=studio,
            locks=PathLocks(),
            emit=entrance.emit,
            resets=_resets(settings),
            sliding=settings.context.mode == "sliding",
            refresh_when_cold=settings.prompt.refresh_when_cold,
            undo=undo,
            keeping=keeping(settings, home),
        )


async def _open_state(stack: AsyncExitStack, home: Home, settings: schema.StoreSettings) -> tuple[Owner, Store, Nudges]:
    """The database and this process's place at it, until `stack` ends."""
    owner = Owner(str(home.run))
    stack.callback(owner.close)
    with private_files():
        store = Store.open(
            str(home.database), process=owner.name, settings=StoreSettings(durability=settings.durability)
        )
    stack.push_async_callback(store.close)
    await close_orphans(store, owner)
    nudges = Nudges(owner, store)
    stack.callback(nudges.close)
    return owner, store, nudges


async def _open_servers(stack: AsyncExitStack, settings: schema.Settings, home: Home, *, emit: Emit) -> Servers | None:
    """The MCP servers that are configured, until `stack` ends; None where there are none."""
    if not settings.mcp.servers:
        return None
    from limpet.mcp.kept import Records  # only where there are any
    from limpet.mcp.servers import Servers
    from limpet.mcp.spec import specs_of

    servers = Servers(specs_of(settings, home.root, os.environ), Records(home.mcp), clock=SystemClock())
    stack.push_async_callback(servers.close)
    await servers.learn(wait=settings.mcp.wait, warn=lambda text: emit(Notice(text, level="warning")))
    return servers


def keeping(settings: schema.Settings, home: Home) -> Keeping:
    """How long things are kept."""
    return Keeping(
        sessions=settings.sessions.keep_days,
        archives=settings.sessions.archive_days,
        rows=settings.store.keep_days,
        archive=str(home.archive),
        blobs=str(home.blobs),
    )


async def close_orphans(store: Store, owner: Owner) -> None:
    """Mark what requests of dead processes have spent as spent."""
    for process in store.read(lambda connection: usage.orphans(connection, owner)):
        await store.write(lambda connection, process=process: usage.close_orphans(connection, process))


def _keeper(settings: schema.UndoSettings, home: Home, workspace: str, *, clock: Clock) -> Keeper:
    million = 1_000_000
    return Keeper(
        Copies(str(home.undo)),
        workspace,
        clock=clock,
        hidden=(str(home.root),),
        limits=UndoLimits(file=settings.file_mb * million, total=settings.turn_mb * million),
        retention=Retention(days=settings.days, total=settings.total_mb * million),
    )


def _meter(settings: schema.Settings, store: Store, owner: Owner, *, clock: Clock) -> UsageMeter:
    budgets = settings.budgets
    return UsageMeter(
        store,
        owner,
        clock,
        budgets=Budgets(
            session=round(budgets.session * 1e6),
            day=round(budgets.day * 1e6),
            agent_day=round(budgets.agent_day * 1e6),
        ),
        day_start=lambda now: day_start(now, settings.user.timezone),
    )


def _guard(settings: schema.NetSettings) -> Guard:
    return Guard(
        NetworkRules(allow_cidrs=settings.allow_cidrs, allow_hosts=settings.allow_hosts, deny_hosts=settings.deny_hosts)
    )


def _extras(settings: schema.Settings, home: Home, studio: Studio, *, sessions: Sessions) -> ToolExtras:
    search = settings.tools.web.search
    key = resolve(search.key, key="tools.web.search.key", root=home.root, environ=os.environ)
    return ToolExtras(
        images=studio if studio.can_make_images else None,
        search=SearchSettings(engine=search.engine, key=key, url=search.url),
        sessions=sessions,
    )


def _resets(settings: schema.Settings) -> Resets:
    """The rules by which conversations begin anew, by the kind of their key."""
    rules = {"": settings.sessions.reset, **settings.sessions.reset_by_kind}

    def resets(key: str, last: int, now: int) -> str:
        rule = rules.get(keys.kind_of(key), rules[""])
        daily = None if rule.daily < 0 else rule.daily
        zone = local_moment(now, settings.user.timezone).tzinfo
        assert zone is not None
        return due(Reset(idle=rule.idle, daily=daily), last, now, zone=zone)

    return resets


def _deadlines(settings: schema.LlmSettings) -> Deadlines:
    return Deadlines(connect=settings.connect, first_byte=settings.first_byte, idle=settings.idle, total=settings.total)


def _limits(settings: schema.Limits) -> Limits:
    return Limits(steps=settings.steps, minutes=settings.minutes, dollars=settings.dollars)
