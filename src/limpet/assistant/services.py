"""What a conversation works with: built once per process by `app`, shared by all conversations of an agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Protocol

from msgspec import Struct

from limpet.agent.execute import PathLocks
from limpet.agent.limits import Limits
from limpet.assistant.weigh import Weights
from limpet.config.schema import PurposeSettings
from limpet.llm.media.studio import Studio
from limpet.llm.purposes import PurposeName, purpose_of, sampling_for
from limpet.memory.library import Library
from limpet.session.log import Log
from limpet.store.commits import CROWD, STEERING, Queueing
from limpet.store.driver import Store
from limpet.store.nudge import Nudges
from limpet.store.owner import Owner
from limpet.store.subagents import Crowd
from limpet.types.entry import Note, PromptEntry
from limpet.types.envelope import InboxRow, Trust
from limpet.types.message import Sampling, ToolChoice
from limpet.types.ports import Asker, Blobs, Clock, Emit, Hooks, Model, Policy, Redactor, Schedules, Tool
from limpet.types.profile import Profile
from limpet.undo.keeper import Keeper


class Models(Protocol):
    """Called for the model of a session; provided by `app` over `llm.choose`."""

    async def get(self, reference: str) -> Model:
        """The model `provider/model`, or with an empty reference the one at hand. Raises `NoModelError`."""
        ...


class Prompting(Protocol):
    """Called for what the model is told; provided by `app` over `prompt`."""

    def snapshot(self, profile: Profile, *, reason: str, before: str = "", key: str = "") -> PromptEntry:
        """The prompt, tools included, as the workspace is now, for conversations under the session key `key`; `before`
        is what the last one was about.

        Raises `UserError` when the model's window is too small for any.
        """
        ...

    def memory(self, profile: Profile, *, key: str = "") -> str:
        """What a prompt made now would show of the memory of the conversations under `key`."""
        ...

    def changes(self, snapshot: PromptEntry, told: Sequence[Note]) -> list[Note]:
        """A note for each prompt file whose content is no longer what the model was told."""
        ...

    def folders(self, paths: Iterable[str], told: Sequence[Note]) -> list[Note]:
        """A note for each folder with instructions of its own that the files `paths` lie in, untold so far."""
        ...

    def stale(self, snapshot: PromptEntry) -> str:
        """Why the snapshot has to be made anew (BOOTSTRAP.md went away); empty when it holds."""
        ...

    def runtime(self, row: InboxRow, facts: Sequence[str] = ()) -> str:
        """The runtime block that goes with an event: time, channel, chat, sender, and `facts`."""
        ...


class Notes(Protocol):
    """Called for the day's notes and what is kept of ended conversations; provided by `app` over `memory`.

    Files are named below the workspace; what strangers had a part in goes to files of its own. All that write raise
    `WorkspaceError`, and writing the same again changes nothing.
    """

    def file(self, at: int, trust: Trust, *, key: str = "") -> str:
        """The file of the day for what was said at `at` (UTC ms) under the session key `key`."""
        ...

    async def append(self, file: str, lines: Sequence[str]) -> int:
        """Append the lines that the file does not hold yet; how many."""
        ...

    def excerpt_file(self, at: int, session: str, trust: Trust, *, key: str = "") -> str:
        """The file for the last messages of `session`, which ended at `at`."""
        ...

    async def keep(self, file: str, text: str) -> None:
        """Write `text` to `file`."""
        ...

    async def remember(self, at: int, session: str, *, text: str, trust: Trust, key: str = "") -> None:
        """Add a paragraph about `session`, which ended at `at`, to the history."""
        ...


class Recall(Protocol):
    """Called before a turn for what memory holds on it; provided by `assistant.recalling`. Neither raises."""

    @property
    def is_on(self) -> bool:
        """Whether something is recalled where the owner has said nothing for the session."""
        ...

    def serves(self, key: str, channel: str) -> bool:
        """Whether anything is recalled for events from `channel` to the session under `key`: not where nobody asks."""
        ...

    async def facts(self, text: str, *, key: str, log: Log, prompted: Callable[[], str]) -> Sequence[str]:
        """Lines for the runtime block that goes with the message `text` to the session under `key`.

        Where the log has no prompt yet, `prompted` tells what the next one will show of memory.
        """
        ...

    async def why(self, text: str, *, key: str, log: Log) -> str:
        """For people: what was looked for because of `text`, what was found, and what is shown of it."""
        ...


class Prompts(Protocol):
    """Called for prompts that MCP servers offer; provided by `app` over `mcp`."""

    def listed(self) -> Sequence[tuple[str, str]]:
        """How each is called (SERVER.PROMPT and its arguments), and what it is for."""
        ...

    async def text(self, name: str, arguments: str) -> tuple[str, Trust]:
        """What the prompt `name` says, and how far that is trusted. Raises `InputError`, `ToolError`."""
        ...


class Called(Protocol):
    """A skill that people call: its name, and what it says."""

    @property
    def name(self) -> str: ...
    @property
    def location(self) -> str: ...
    @property
    def command(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def instructions(self) -> str: ...
    @property
    def missing(self) -> tuple[str, ...]: ...


class Skills(Protocol):
    """Called for skills that people call by a slash command; provided by `app` over `skills`."""

    def callable(self) -> Sequence[Called]:
        """Those that people may call."""
        ...

    def named(self, name: str) -> Called | None:
        """The one of that name or command; None when there is none."""
        ...


class Commands(Protocol):
    """Called about commands in the background; provided by `app` over `tools.processes`."""

    async def stop(self, turn: str) -> None:
        """End those that a turn started: the owner has stopped it."""
        ...


async def _no_index(files: Sequence[str]) -> None:
    """Nothing is indexed."""


def _utc(at: int) -> datetime:
    return datetime.fromtimestamp(at / 1000, UTC)


NOT_BOUND: Mapping[str, Sequence[str]] = MappingProxyType({})


class MemoryRules(Struct, frozen=True):
    """The owner's rules for memory. `local` gives his time of a moment (UTC ms); `cap` is the characters of what lasts.

    `bound` names conversations that share a memory (`owner`: the owner's own). `every` is milliseconds between two
    consolidations, 0 = never; `lines` of new day notes bring one on earlier. `forgotten` is told which files have lost
    something, so that an index does.
    """

    local: Callable[[int], datetime] = _utc
    cap: int = 12_000
    bound: Mapping[str, Sequence[str]] = NOT_BOUND
    every: int = 86_400_000
    lines: int = 60
    forgotten: Callable[[Sequence[str]], Awaitable[None]] = _no_index


Resets = Callable[[str, int, int], str]
"""Why the conversation under a key, last used at one moment, begins anew at another (UTC ms); empty: it does not."""


def no_resets(key: str, last: int, now: int) -> str:
    """Conversations go on for ever."""
    return ""


class Keeping(Struct, frozen=True):
    """How many days things are kept, 0 = for ever: ended sessions, their archives, rows of what came in and went out,
    sessions of `runs` of jobs.

    `archive` and `blobs` are the absolute paths of the folders for what is deleted and for attachments.
    """

    sessions: int = 0
    archives: int = 0
    rows: int = 0
    archive: str = ""
    blobs: str = ""
    runs: int = 0


FOR_EVER = Keeping()


def steering(key: str) -> Queueing:
    """Messages that come while a turn runs are taken into it."""
    return STEERING


class HelperRules(Struct, frozen=True):
    """How deep helpers may have helpers (1: only conversations have), how many work at once, what each may use up."""

    depth: int = 1
    crowd: Crowd = CROWD
    limits: Limits = Limits(steps=100, minutes=15.0, dollars=0.5)


class Rules(Struct, frozen=True):
    """The owner's rules for conversations: when they begin anew by themselves (`resets`), how long things are kept.

    `sliding`: a full window drops the oldest turns instead of summarising them. `refresh_when_cold`: changed files make
    a new prompt once the provider's cache has expired. `approval`: milliseconds after which an unanswered one is a no.
    `queueing` says by a session key what becomes of messages while a turn runs. `restart` has the process begin anew,
    where it is one that stays.
    """

    resets: Resets = no_resets
    keeping: Keeping = FOR_EVER
    sliding: bool = False
    refresh_when_cold: bool = False
    approval: int = 3_600_000
    queueing: Callable[[str], Queueing] = steering
    restart: Callable[[], None] | None = None
    helpers: HelperRules = HelperRules()


class Appointed(Struct, frozen=True):
    """The model for a purpose and how to ask it."""

    model: Model
    sampling: Sampling
    tool_choice: ToolChoice


@dataclass(frozen=True, slots=True)
class Services:
    """`workspace` is an absolute path, `tools` are in the order the model is told, `undo` keeps what turns change."""

    agent: str
    workspace: str
    store: Store
    owner: Owner
    nudges: Nudges
    clock: Clock
    models: Models
    prompting: Prompting
    notes: Notes
    weights: Weights
    tools: Sequence[Tool]
    policy: Policy
    approvals: Asker
    redactor: Redactor
    blobs: Blobs
    limits: Limits
    purposes: PurposeSettings
    studio: Studio
    locks: PathLocks
    emit: Emit
    undo: Keeper | None = None
    commands: Commands | None = None
    hooks: Hooks | None = None
    prompts: Prompts | None = None
    recall: Recall | None = None
    library: Library | None = None
    skills: Skills | None = None
    schedules: Schedules | None = None
    rules: Rules = Rules()  # noqa: RUF009 (frozen)
    memory: MemoryRules = MemoryRules()  # noqa: RUF009 (frozen)

    async def model_for(self, purpose: PurposeName, *, chat: str = "", tools: bool = False) -> Appointed:
        """The model for `purpose`, where none is set that of the chat (`chat` is the session's reference).

        `tools`: some will be offered. Raises `NoModelError`, `ConfigError`.
        """
        found = purpose_of(self.purposes, purpose)
        model = await self.models.get(found.model or chat)
        return Appointed(model, sampling_for(found, model.profile, tools=tools), found.tool_choice)
