"""The composition root: builds the object graph of one process from its settings, and ends it again.

`app` starts the program and must stay light; everything is imported here, when a command needs the assistant.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from limpet.agent.execute import PathLocks
from limpet.agent.hooks import Dispatch
from limpet.assistant.addresses import Addresses
from limpet.assistant.elsewhere import Elsewhere
from limpet.assistant.library import library_of
from limpet.assistant.memory_scope import scope_of
from limpet.assistant.owners import with_owners
from limpet.assistant.recalling import Recalling, Recollection
from limpet.assistant.services import Services
from limpet.assistant.shelf import ModelShelf, Sources
from limpet.assistant.subagents import Spawning, lacks, role_of
from limpet.assistant.unattended import reserved
from limpet.assistant.weigh import Weights
from limpet.cli.door import Entrance
from limpet.cli.group import Invocation
from limpet.config import schema
from limpet.config.agents import settings_of
from limpet.config.load import Loaded as LoadedSettings
from limpet.config.machine import start_warnings
from limpet.config.paths import Home, find_workspace, prepare_home, prepare_workspace, private_files
from limpet.config.secrets import SecretRedactor, known_secrets, resolve, store_fault
from limpet.llm.configured import model_settings
from limpet.llm.media.studio import Studio
from limpet.memory.notes import WorkspaceNotes
from limpet.net.client import Web
from limpet.net.guard import Guard, NetworkRules
from limpet.plugins.loaded import NOTHING_LOADED, Loaded
from limpet.prompt.runtime import day_start, local_moment, local_time
from limpet.prompt.templates import seed_workspace
from limpet.prompt.workspace import Beside, WorkspacePrompting
from limpet.rules import helper_rules, limits_of, memory_rules, rules_of
from limpet.sandbox.network import NO_NETWORK, Network
from limpet.sandbox.run import Sandbox
from limpet.schedule.stored import StoredSchedules
from limpet.skills.configured import shelf_of
from limpet.skills.runner import Runner, found_tools
from limpet.skills.shelf import Shelf
from limpet.skills.skill import Needs
from limpet.store import audit, peers, usage
from limpet.store.blobs import BlobStore
from limpet.store.budgets import Budgets
from limpet.store.driver import Store, StoreSettings
from limpet.store.nudge import Nudges
from limpet.store.owner import Owner
from limpet.store.processes import StoredProcesses
from limpet.store.usage import UsageMeter
from limpet.toolbox import Toolbox, ToolExtras, command_limits
from limpet.tools.cron import make_cron
from limpet.tools.message import make_message
from limpet.tools.newcomers import watch
from limpet.tools.policy import BuiltinPolicy
from limpet.tools.processes import Processes
from limpet.tools.profiles import is_own, offered
from limpet.tools.protected import present
from limpet.tools.recollect import recollection_tools
from limpet.tools.respond import respond
from limpet.tools.rules import RulePolicy
from limpet.tools.spawn import make_spawn
from limpet.tools.web_search import SearchSettings
from limpet.types.clock import SystemClock
from limpet.types.event import Notice
from limpet.types.hook import Hook
from limpet.types.ports import Emit, Tool
from limpet.undo.copies import Copies
from limpet.undo.keeper import Keeper, Retention
from limpet.undo.tree import Limits as UndoLimits

if TYPE_CHECKING:
    from limpet.egress.gate import Gate
    from limpet.mcp.servers import Servers

log = logging.getLogger(__name__)


class State(Struct, frozen=True):
    """The database of a home and this process's place at it."""

    owner: Owner
    store: Store
    nudges: Nudges


@asynccontextmanager
async def open_assistant(invocation: Invocation, entrance: Entrance) -> AsyncGenerator[Services]:
    """The services of one process, until the block ends. Raises `UserError`, `StoreError`."""
    async with AsyncExitStack() as stack:
        loaded, home = invocation.settings(), invocation.home()
        prepare(settings_of(loaded.settings, entrance.agent), home, emit=entrance.emit)
        state = await open_state(stack, home, loaded.settings.store)
        yield await open_agent(stack, loaded, home=home, entrance=entrance, state=state)


async def open_agent(
    stack: AsyncExitStack, loaded: LoadedSettings, *, home: Home, entrance: Entrance, state: State
) -> Services:
    """The services of one agent over a state, until `stack` ends. Raises `UserError`, `StoreError`."""
    settings = with_owners(settings_of(loaded.settings, entrance.agent), state.store.read(peers.owners))
    clock, store = SystemClock(), state.store
    workspace = find_workspace(settings.agent.workspace, home)
    redactor = SecretRedactor(known_secrets(loaded.table, root=home.root, environ=os.environ))
    sandbox = _sandbox(stack, settings, home)
    processes = await _processes(stack, sandbox, StoredProcesses(store, state.owner, clock), nudges=state.nudges)
    blobs, others = BlobStore(str(home.blobs), store), _elsewhere(settings, store, redactor)
    models = _models(settings, home, entrance, state=state, blobs=blobs, redactor=redactor)
    studio = _studio(stack, settings, models)
    skills = shelf_of(settings, home, os.environ, has_tool=lambda name: name in tools.names)
    extras = await _extras(stack, settings, home, studio=studio, sandbox=sandbox, skills=skills)
    servers, plugins = await _open_servers(stack, settings, home, emit=entrance.emit), _plugins(settings, entrance.emit)
    recall = _recall(stack, settings, home, entrance=entrance, store=store, redactor=redactor, studio=studio)
    schedules = StoredSchedules(store, clock, settings, agent=entrance.agent)
    speaking = (make_cron(schedules), *_speaking(settings, models, entrance.agent, store=store, redactor=redactor))
    own = (*recollection_tools(recall), *speaking, *_browser(stack, settings, home), *plugins.tools, *entrance.tools)
    tools = Toolbox(
        sandbox,
        settings.tools,
        web=_web(stack, settings.net),
        extras=structs.replace(extras, processes=processes, sessions=others, more=own),
        servers=servers,
        profiles=offered(settings.policy, entrance.agent),
    )
    return Services(
        agent=entrance.agent,
        workspace=str(workspace),
        store=store,
        owner=state.owner,
        nudges=state.nudges,
        clock=clock,
        models=models,
        prompting=_prompting(settings, entrance, store, tools=tools, redactor=redactor, skills=skills, home=home),
        notes=_notes(settings, str(workspace)),
        weights=Weights(),
        tools=tools,
        policy=_policy(sandbox, servers, settings.policy, own=entrance.tools),
        approvals=entrance.approvals,
        redactor=redactor,
        blobs=blobs,
        limits=limits_of(settings.agent.limits),
        purposes=settings.models.purposes,
        studio=studio,
        locks=PathLocks(),
        emit=entrance.emit,
        commands=processes,
        hooks=_hooks(stack, plugins, settings, ground=(sandbox, str(workspace), redactor), emit=entrance.emit),
        prompts=servers.prompts if servers else None,
        recall=recall,
        library=recall.library,
        skills=skills,
        schedules=schedules,
        undo=_keeper(stack, settings.undo, home, workspace=str(workspace)),
        rules=rules_of(settings, home),
        memory=memory_rules(settings, recall.library),
    )


def _elsewhere(settings: schema.Settings, store: Store, redactor: SecretRedactor) -> Elsewhere:
    return Elsewhere(store, redactor, visibility=settings.sessions.visibility)


def _recall(
    stack: AsyncExitStack,
    settings: schema.Settings,
    home: Home,
    *,
    entrance: Entrance,
    store: Store,
    redactor: SecretRedactor,
    studio: Studio,
) -> Recollection:
    """What conversations find in notes and earlier ones, until `stack` ends."""
    library = library_of(settings, home, agent=entrance.agent, studio=studio)
    stack.push_async_callback(library.close)
    if entrance.stays and settings.memory.watch == "auto":
        library.watch()
    return Recollection(
        library,
        store,
        redactor,
        agent=entrance.agent,
        visibility=settings.sessions.visibility,
        emit=entrance.emit,
        recalling=Recalling(settings.memory.recall, settings.memory.recall_score, settings.memory.recall_unasked),
        scope=lambda key: scope_of(key, settings.memory.bound),
    )


def _models(
    settings: schema.Settings,
    home: Home,
    entrance: Entrance,
    *,
    state: State,
    blobs: BlobStore,
    redactor: SecretRedactor,
) -> ModelShelf:
    return ModelShelf(
        settings,
        Sources(model_settings(settings, home.root, os.environ), os.environ, entrance.announces, entrance.given),
        store=state.store,
        blobs=blobs,
        meter=_meter(settings, state.store, state.owner),
        clock=SystemClock(),
        redactor=redactor,
        emit=entrance.emit,
    )


def _studio(stack: AsyncExitStack, settings: schema.Settings, models: ModelShelf) -> Studio:
    """What media are made with, by models that end after it."""
    stack.push_async_callback(models.close)
    studio = Studio(settings.models.purposes, models.desk)
    stack.push_async_callback(studio.close)
    return studio


def _prompting(
    settings: schema.Settings,
    entrance: Entrance,
    store: Store,
    *,
    tools: Toolbox,
    redactor: SecretRedactor,
    skills: Shelf,
    home: Home,
) -> WorkspacePrompting:
    depth, zone = settings.helpers.depth, settings.user.timezone
    for warning in skills.warnings():
        entrance.emit(Notice(warning, level="warning"))
    return WorkspacePrompting(
        str(find_workspace(settings.agent.workspace, home)),
        settings,
        tools=tools.specs,
        redactor=redactor,
        clock=SystemClock(),
        conversation=entrance.conversation,
        emit=entrance.emit,
        beside=Beside(
            lambda key: scope_of(key, settings.memory.bound),
            skills,
            task=lambda key: role_of(store, key, when=lambda at: local_time(at, zone)),
            withheld=lambda key, tool: bool(lacks(key, tool, depth=depth) or reserved(key, tool)),
        ),
    )


def _policy(
    sandbox: Sandbox, servers: Servers | None, settings: schema.PolicySettings, *, own: Sequence[Tool]
) -> RulePolicy:
    builtin_rules = BuiltinPolicy(sandbox, trusted=frozenset(("browser", *(one.spec.name for one in own))))
    return RulePolicy(servers.policy(builtin_rules) if servers else builtin_rules, settings)


def _sandbox(stack: AsyncExitStack, settings: schema.Settings, home: Home) -> Sandbox:
    sandbox = Sandbox(hidden=(str(home.root),), enabled=settings.tools.sandbox.mode == "auto")
    stack.push_async_callback(sandbox.close)
    return sandbox


async def _processes(stack: AsyncExitStack, sandbox: Sandbox, records: StoredProcesses, *, nudges: Nudges) -> Processes:
    """The commands in the background, until `stack` ends; those that outlived a killed agent are ended first."""
    processes = Processes(sandbox, records, on_end=lambda told: nudges.send())
    stack.push_async_callback(processes.close)
    await processes.end_lost()
    return processes


def _web(stack: AsyncExitStack, settings: schema.NetSettings) -> Web:
    web = Web(guard(settings), proxy=settings.proxy)
    stack.push_async_callback(web.close)
    return web


def _notes(settings: schema.Settings, workspace: str) -> WorkspaceNotes:
    return WorkspaceNotes(
        workspace,
        lambda at: local_moment(at, settings.user.timezone),
        scope=lambda key: scope_of(key, settings.memory.bound),
    )


def _speaking(
    settings: schema.Settings, models: ModelShelf, agent: str, *, store: Store, redactor: SecretRedactor
) -> tuple[Tool, ...]:
    """The tools that speak to chats and to helpers."""
    model = settings.models.purposes.subagent.model
    spawning = Spawning(store, models, redactor, rules=helper_rules(settings), model=model, agent=agent)
    return make_message(Addresses(store)), make_spawn(spawning), respond


def prepare(settings: schema.Settings, home: Home, *, emit: Emit) -> Path:
    """The home as it has to be, what is odd about it told; gives the workspace."""
    prepare_home(home)
    for warning in filter(None, (*start_warnings(home.root, os.environ), store_fault(home.root))):
        emit(Notice(warning, level="warning"))
    workspace = find_workspace(settings.agent.workspace, home)
    seed_workspace(str(workspace), bootstrap=prepare_workspace(workspace))
    return workspace


async def open_state(stack: AsyncExitStack, home: Home, settings: schema.StoreSettings) -> State:
    """The database and this process's place at it, until `stack` ends."""
    owner = Owner(str(home.run))
    stack.callback(owner.close)
    with private_files():
        store = Store.open(
            str(home.database), process=owner.name, settings=StoreSettings(durability=settings.durability)
        )
    stack.push_async_callback(store.close)
    await close_orphans(store, owner)
    await _note_config(store, home.config)
    nudges = Nudges(owner, store)
    stack.callback(nudges.close)
    return State(owner, store, nudges)


async def _open_servers(stack: AsyncExitStack, settings: schema.Settings, home: Home, *, emit: Emit) -> Servers | None:
    """The MCP servers that are configured, until `stack` ends; None where there are none."""
    if not settings.mcp.servers:
        return None
    from limpet.mcp.kept import Records  # only where there are any
    from limpet.mcp.servers import Servers
    from limpet.mcp.spec import specs_of

    workspace = str(find_workspace(settings.agent.workspace, home))
    specs = specs_of(settings, home.root, os.environ, workspace=workspace)
    servers = Servers(specs, Records(home.mcp), clock=SystemClock())
    stack.push_async_callback(servers.close)
    await servers.learn(wait=settings.mcp.wait, warn=lambda text: emit(Notice(text, level="warning")))
    return servers


def _browser(stack: AsyncExitStack, settings: schema.Settings, home: Home) -> tuple[Tool, ...]:
    """The tool over a browser that its first call starts, until `stack` ends; nothing where there is none."""
    from limpet.tools.browser.chromium import is_available  # small; the rest only where it is used

    wanted = settings.tools.browser
    if not wanted.enabled or not is_available(wanted.executable):
        return ()
    from limpet.tools.browser.session import Browser, BrowserSettings
    from limpet.tools.browser.tool import make_browser

    def gate() -> Gate:
        from limpet.egress.gate import Gate  # when the browser starts

        return Gate(guard(settings.net))

    how = BrowserSettings(wanted.executable, wanted.headless, wanted.idle_minutes * 60, wanted.timeout)
    browser = Browser(home.root / "browser", how, open_gate=gate)
    stack.push_async_callback(browser.close)
    return (make_browser(browser),)


def _plugins(settings: schema.Settings, emit: Emit) -> Loaded:
    """What the trusted plug-ins give; where none is trusted, nothing is even looked for."""
    if not settings.plugins.trusted:
        return NOTHING_LOADED
    from limpet.plugins.loading import load  # only where there are any

    def warn(text: str) -> None:
        log.warning(text)
        emit(Notice(text, level="warning"))

    return load(settings.plugins, is_taken=is_own, warn=warn)


def _hooks(
    stack: AsyncExitStack,
    plugins: Loaded,
    settings: schema.Settings,
    *,
    ground: tuple[Sandbox, str, SecretRedactor],
    emit: Emit,
) -> Dispatch | None:
    found: tuple[Hook, ...] = plugins.hooks
    if settings.hooks:
        from limpet.agent.shell_hooks import Ground, shell_hooks  # only where there are any

        found += shell_hooks(settings.hooks, Ground(*ground))
    if not found:
        return None
    hooks = Dispatch(found, seconds=settings.plugins.hook_timeout, emit=emit)
    stack.push_async_callback(hooks.close)
    return hooks


async def _note_config(store: Store, config: Path) -> None:
    """Tell the audit of settings that were changed since it was last told, by whatever hand."""
    found = hashlib.sha256(config.read_bytes() if config.exists() else b"").hexdigest()
    if store.read(audit.config_seen) != found:
        now = time.time_ns() // 1_000_000
        await store.write(
            lambda connection: audit.append(connection, "config.changed", "config.toml", detail=found, now=now)
        )


async def close_orphans(store: Store, owner: Owner) -> None:
    """Mark what requests of dead processes have spent as spent."""
    for process in store.read(lambda connection: usage.orphans(connection, owner)):
        await store.write(lambda connection, process=process: usage.close_orphans(connection, process))


def _keeper(stack: AsyncExitStack, settings: schema.UndoSettings, home: Home, *, workspace: str) -> Keeper:
    million = 1_000_000
    keeper = Keeper(
        Copies(str(home.undo)),
        workspace,
        clock=SystemClock(),
        hidden=(str(home.root),),
        limits=UndoLimits(file=settings.file_mb * million, total=settings.turn_mb * million),
        retention=Retention(days=settings.days, total=settings.total_mb * million),
    )
    stack.callback(keeper.close)
    return keeper


def _meter(settings: schema.Settings, store: Store, owner: Owner) -> UsageMeter:
    budgets = settings.budgets
    return UsageMeter(
        store,
        owner,
        SystemClock(),
        budgets=Budgets(
            session=round(budgets.session * 1e6),
            day=round(budgets.day * 1e6),
            agent_day=round(budgets.agent_day * 1e6),
        ),
        day_start=lambda now: day_start(now, settings.user.timezone),
    )


def guard(settings: schema.NetSettings) -> Guard:
    return Guard(
        NetworkRules(allow_cidrs=settings.allow_cidrs, allow_hosts=settings.allow_hosts, deny_hosts=settings.deny_hosts)
    )


async def _network(
    stack: AsyncExitStack,
    settings: schema.Settings,
    home: Home,
    *,
    sandbox: Sandbox,
    granted: Iterable[tuple[str, Needs]],
) -> Network:
    """What commands see of the network, with what was granted to skills; their proxy runs until `stack` ends."""
    wanted = settings.tools.exec.network
    if wanted == "none" or sandbox.report.kind == "none":
        return NO_NETWORK
    if wanted == "open":
        return Network("open")
    from limpet.config.vault import Vault
    from limpet.egress.configured import egress_of, with_granted  # only where it is configured

    allowed = with_granted(settings.egress, granted, kept=Vault(home.root).names())
    egress = egress_of(allowed, home, os.environ, guard=guard(settings.net))
    return (await stack.enter_async_context(egress)).network


async def _extras(
    stack: AsyncExitStack,
    settings: schema.Settings,
    home: Home,
    *,
    studio: Studio,
    sandbox: Sandbox,
    skills: Shelf,
) -> ToolExtras:
    search = settings.tools.web.search
    key = resolve(search.key, key="tools.web.search.key", root=home.root, environ=os.environ)
    network = await _network(stack, settings, home, sandbox=sandbox, granted=skills.granted)
    limits = command_limits(settings.tools.exec)
    runner = Runner(sandbox, limits=limits, network=network, protected=present, shown=skills.folders, watch=watch)
    return ToolExtras(
        images=studio if studio.can_make_images else None,
        search=SearchSettings(engine=search.engine, key=key, url=search.url),
        env=tuple(
            (name, resolve(one, key=f"tools.exec.secrets.{name}", root=home.root, environ=os.environ))
            for name, one in settings.tools.exec.secrets.items()
        ),
        network=network,
        shown=skills.folders,
        found=partial(found_tools, skills, runner),
    )
