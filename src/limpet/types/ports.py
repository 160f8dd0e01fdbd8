"""Ports: what one unit needs from another, as Protocols. Above each stands who calls it and who provides it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from msgspec import Struct

from limpet.types.approval import Approval, Reply, Ruling, Wanted
from limpet.types.content import ToolCall
from limpet.types.entry import GoalEntry, Payload
from limpet.types.envelope import InboxRow, Part, Person, Post, Spawn, Trust
from limpet.types.event import Event, ModelEvent
from limpet.types.hook import HookEvent, HookPoint, ToolWanted
from limpet.types.job import JobAct, JobChange, JobWish, Outward
from limpet.types.message import AssistantMessage, Request, ToolChoice
from limpet.types.profile import Profile
from limpet.types.tool import NO_VEIL, Effect, FileIntent, ToolResult, ToolSpec, Veil
from limpet.types.trace import Trace
from limpet.types.usage import NO_USAGE, Usage

Emit = Callable[[Event], None]
"""Tells the watchers. Never raises, never blocks."""


class Clock(Protocol):
    """Called by everything that needs the time; provided by `app` (the system's) and tests (`FakeClock`)."""

    def now(self) -> int:
        """UTC milliseconds."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...


class Model(Protocol):
    """Called by the loop; provided by `llm` (one wire, wrapped in retry and metering) and `ScriptedModel`."""

    @property
    def profile(self) -> Profile: ...

    def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        """The answer to `request`: deltas, then exactly one `Done`. Raises `ModelError`.

        Who stops reading early closes it (`contextlib.aclosing`): that gives the connection back at once.
        """
        ...

    async def close(self) -> None:
        """Give back connections and child processes."""
        ...


class PendingCall(Struct, frozen=True):
    """A call that has no result yet. `started` is its intent when it was begun before a crash."""

    assistant: str
    index: int
    call: ToolCall
    started: bool = False
    intent: FileIntent | None = None

    @property
    def name(self) -> str:
        return f"{self.assistant}.{self.index}"


class View(Protocol):
    """Called by the loop for what to send next; provided by `assistant` over the session's log."""

    async def request(self, *, tool_choice: ToolChoice = "auto") -> Request:
        """The next request, pruned and compacted as needed. Raises `ContextOverflowError` when nothing helps."""
        ...

    async def overflowed(self, limit: int) -> bool:
        """The provider refused the request as too long: make the next one smaller. False when that cannot be done.

        `limit` is the window in tokens that it named, 0 when it named none.
        """
        ...

    def pending(self) -> tuple[PendingCall, ...]:
        """Calls of the newest assistant message that have no result, in their order."""
        ...


class Journal(Protocol):
    """Called by the loop to commit each step; provided by `assistant` over `store`. Every method returns after fsync.

    All raise `LeaseLostError` when the session is no longer ours, `StoreError` when nothing could be written.
    """

    async def assistant(self, answer: AssistantMessage, *, reservation: str) -> tuple[PendingCall, ...]:
        """Log an answer with calls; gives the calls by their names."""
        ...

    async def started(self, call: PendingCall, *, effect: Effect, intent: FileIntent | None) -> None:
        """Log the intent to run a call, then check that the lease is fresh. Act only after this returns."""
        ...

    async def result(
        self,
        call: PendingCall,
        result: ToolResult,
        *,
        records: Sequence[Payload] = (),
        posts: Sequence[Outward] = (),
    ) -> None:
        """Log the outcome of a call, and with it (effect `row`) what else it put on record and says elsewhere."""
        ...

    async def note(self, text: str, *, origin: str) -> None:
        """Log an instruction of Limpet's own, which travels with the next request."""
        ...

    async def absorb(self) -> int:
        """Take queued messages of the session into the running turn (steering); how many there were."""
        ...

    async def discard(self, answer: AssistantMessage, *, reservation: str) -> None:
        """Settle the usage of an answer that does not count (an empty one)."""
        ...

    async def end(self, answer: AssistantMessage | None, *, reservation: str) -> bool:
        """Log the last answer (None: a tool ended the turn) and end the turn, unless messages are waiting.

        Then they are taken into the turn, and it is False: the loop goes on.
        """
        ...


class Approvals(Protocol):
    """Called by tool execution when policy says ask, and by the tool `ask`; provided by `assistant`."""

    async def ask(self, wanted: Wanted) -> Ruling:
        """What the owner says to exactly this; no at once where there is nobody to ask.

        Raises `TurnWaits` while nobody has decided: the call has no result yet and is made again later.
        """
        ...


class Asker(Protocol):
    """Called by `assistant` with what waits for the owner; provided by the terminal, later by chats and the page."""

    @property
    def can_ask(self) -> bool:
        """Whether there is a person to ask."""
        ...

    async def ask(self, approval: Approval) -> Reply | None:
        """What the person says. None: nothing for now, it goes on waiting. Raises `TurnStopped` on a stop."""
        ...


class Hooks(Protocol):
    """Called at the points of a turn at which other code looks in; provided by `agent.hooks`."""

    def watches(self, point: HookPoint) -> bool:
        """Whether anybody is there to be told; else the event need not even be made."""
        ...

    async def refusal(self, event: ToolWanted) -> str:
        """Why a call must not run; empty when no hook objects. A hook that fails or does not answer objects."""
        ...

    async def tell(self, event: HookEvent) -> None:
        """Tell those who watch, one after the other. Their failures are logged and told to people, never raised."""
        ...


class Redactor(Protocol):
    """Called wherever text leaves the process; provided by `config.secrets`."""

    def redact(self, text: str) -> str:
        """`text` with every known secret value, plain or URL-encoded, replaced by `[secret:NAME]`."""
        ...


class Blobs(Protocol):
    """Called by tools and wires for attachments and spills; provided by `store.blobs`."""

    async def put(self, data: bytes) -> str:
        """Keep `data`; gives its SHA-256 (hex), by which it is found again."""
        ...

    def path(self, blob: str) -> str:
        """Absolute path of the blob's file. Raises `FileNotFoundError` when there is none."""
        ...

    def get(self, blob: str) -> bytes:
        """The bytes. Raises `FileNotFoundError` when there are none."""
        ...


class Sessions(Protocol):
    """Called by the session tools; provided by `assistant`. All look from the conversation `session` (its id).

    Texts are for the model, with the lowest trust of what they quote. Raise `ToolError`.
    """

    async def search(self, words: str, *, session: str, limit: int) -> tuple[str, Trust]:
        """What was said in the conversations it may see; without words the newest of them."""
        ...

    async def around(self, anchor: str, *, session: str, limit: int) -> tuple[str, Trust]:
        """What stands before and after a place that `search` has named."""
        ...

    async def post(self, to: str, text: str, *, session: str, call: str) -> Post:
        """The message that says `text` in the conversation `to` (a key, a name or an id)."""
        ...


class Spawner(Protocol):
    """Called by the tool `spawn`; provided by `assistant.subagents`."""

    async def errand(self, task: str, *, focus: str, model: str, session: str, call: str) -> Spawn:
        """The helper for `task`, which the conversation `session` (its id) spawns. Raises `ToolError`."""
        ...


class Outbound(Protocol):
    """Called by the tool `message`; provided by `assistant.addresses`."""

    def parts(self, text: str, to: str, *, session: str, call: str) -> tuple[Part, ...]:
        """The message `text` for the chats that the running turn of `session` answers, or for the one called `to`.

        Raises `ToolError` that lists the chats there are.
        """
        ...


class Schedules(Protocol):
    """Called by the tool `cron` and by `/cron`; provided by `schedule`.

    `session` is the id of the conversation whose turn asks; empty: its owner does, from wherever, or with a command,
    which is the event `order`. All raise `InputError`, and `ToolError` in a run of a job. The changes are made by
    whoever commits them; the text says what they are.
    """

    def add(self, wish: JobWish, *, session: str = "", order: InboxRow | None = None) -> tuple[JobChange, str]: ...

    def act(self, act: JobAct, name: str, *, session: str = "", order: InboxRow | None = None) -> tuple[JobChange, str]:
        """`name` is the name or the id of a job."""
        ...

    def listed(self, *, session: str = "") -> str: ...


class Memory(Protocol):
    """Called by the memory tools and by file tools for memory files; provided by `assistant` for each conversation."""

    async def write(self, text: str, *, lasting: bool, call: str) -> str:
        """Remember `text` for long, or among today's notes; what became of it, for the model. Raises `ToolError`.

        `call` names the call for good: made again, it changes nothing.
        """
        ...

    def judged(self, file: str, before: bytes, after: bytes | None) -> bytes | None:
        """What is to stand in the memory `file` (below the workspace) instead of `after`; None: nothing, it goes.

        Raises `ToolError` for what would lose too much.
        """
        ...


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool may use while it runs. `workspace` is absolute; `key` names the call for good.

    `result_limit` caps the characters of a result (DESIGN 7: 16k, 32k or 64k by window, at most 30 % of it).
    `seen` gives the SHA-256 with which a file (absolute path) was last read or written in this session.
    `starting` commits a file intent (None: that something is about to change) before the tool acts; `progress` shows
    people (not the model) a line.
    `goal` gives the open goal of the session; `record` has an entry, `post` a message for another conversation or a
    chat, committed together with the call's result. `turn` runs the call, which may leave a command in the
    `background`; `intent` is what it had committed when it was interrupted. `memory` is the conversation's own, `veil`
    hides that of others.
    """

    key: str
    session: str
    workspace: str
    result_limit: int
    blobs: Blobs
    redactor: Redactor
    approvals: Approvals
    starting: Callable[[FileIntent | None], Awaitable[None]]
    progress: Callable[[str], None]
    seen: Mapping[str, str] = field(default_factory=dict[str, str])
    goal: Callable[[], GoalEntry | None] = lambda: None
    record: Callable[[Payload], None] = lambda payload: None
    post: Callable[[Outward], None] = lambda post: None
    turn: str = ""
    background: bool = True
    intent: FileIntent | None = None
    memory: Memory | None = None
    veil: Veil = NO_VEIL


Decision = Literal["allow", "ask", "deny"]


class Verdict(Struct, frozen=True):
    """What policy says of a call: why, in a sentence, and by which rule.

    `place` is where it would really run, when that is not plain from its arguments. `even` names the rules besides
    (such as `taint`) that the deciding one sets aside.
    """

    decision: Decision
    reason: str = ""
    rule: str = ""
    place: str = ""
    even: tuple[str, ...] = ()


class Scope(Struct, frozen=True):
    """Where a call is made: by which agent, for whom, and the lowest trust of what the model has read."""

    agent: str = "main"
    people: tuple[Person, ...] = ()
    trust: Trust = "owner"
    workspace: str = "/"


EVERYWHERE = Scope()


class BoundCall(Protocol):
    """A call with validated arguments, ready to run.

    `values` are the arguments by name, `writes` the paths it changes, for the per-path lock.
    """

    @property
    def values(self) -> Mapping[str, object]:
        """The arguments that were given, by name."""
        ...

    @property
    def writes(self) -> tuple[str, ...]: ...

    def plan(self) -> str:
        """The call in one exact line, for approvals."""
        ...

    async def run(self, context: ToolContext) -> ToolResult:
        """Do it. Raises `ToolError` to tell the model what went wrong."""
        ...


class Tool(Protocol):
    """Called by tool execution; provided by `tools`, which build theirs from typed functions with `toolkit`."""

    @property
    def spec(self) -> ToolSpec: ...

    @property
    def effect(self) -> Effect: ...

    @property
    def exclusive(self) -> bool:
        """Whether it runs alone, never beside another call of its batch."""
        ...

    def bind(self, arguments: str, *, workspace: str) -> BoundCall:
        """Check `arguments` (JSON text) against the schema. Raises `ArgumentsError` that lists every fault."""
        ...


class Policy(Protocol):
    """Called by tool execution before each call; provided by `tools.policy`."""

    def decide(self, tool: Tool, call: BoundCall, scope: Scope = EVERYWHERE) -> Verdict: ...


class Embedder(Protocol):
    """Called by `memory` for the vectors of texts; provided by `memory.local_embedder` and `llm.media`."""

    @property
    def name(self) -> str:
        """Of the model: vectors of different ones are never compared."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether it can answer at once, without starting anything."""
        ...

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector for each text, all as long. Raises `LimpetError` when there are none."""
        ...

    async def close(self) -> None: ...


class MemorySearch(Protocol):
    """Called by the memory tools; provided by `assistant`. Both look from the conversation `session` (its id).

    Texts are for the model, with the lowest trust of what they quote. Raise `ToolError`.
    """

    async def search(self, query: str, *, session: str, most: int, min_score: float, limit: int) -> tuple[str, Trust]:
        """What the notes and earlier conversations say about `query`, in up to `limit` characters."""
        ...

    async def get(self, path: str, *, session: str, first: int, lines: int, limit: int) -> tuple[str, Trust]:
        """The lines of a memory file from line `first` (from 1) on."""
        ...


class Media(Struct, frozen=True):
    """Sound or a picture: its bytes and what kind they are."""

    data: bytes
    mime: str


class Transcriber(Protocol):
    """Called for recordings that people attach; provided by `llm.media`.

    All three raise `InputError` for what cannot be done, also when none is configured, `ModelError` and `BudgetError`;
    `session` is what pays.
    """

    @property
    def can_transcribe(self) -> bool:
        """Whether one is configured."""
        ...

    async def transcribe(self, data: bytes, *, name: str, session: str = "") -> str:
        """What is said in a recording; empty where nothing is. `name` is its file name."""
        ...


class Speaker(Protocol):
    """Called to speak a text; provided by `llm.media`."""

    async def speak(self, text: str, *, format: str = "", session: str = "") -> Media:
        """`format` is such as `mp3`, empty = as set."""
        ...


class ImageMaker(Protocol):
    """Called to make a picture; provided by `llm.media`."""

    async def make_image(self, prompt: str, *, size: str = "", session: str = "") -> Media:
        """`size` is `WIDTHxHEIGHT`, empty = as set."""
        ...


class Rests(Protocol):
    """Called by `llm.failover` for credentials and services that just failed; provided by `store.rests`."""

    def look(self, name: str) -> tuple[int, str]:
        """Until when (UTC ms) `name` is left alone, and why; 0 when it is not."""
        ...

    async def rest(self, name: str, *, until: int, reason: str) -> None:
        """Leave `name` alone until then."""
        ...


class Known(Struct, frozen=True):
    """What a service has taught of one model: fields it refuses (see `Profile.refused`), its window or 0."""

    refused: tuple[str, ...] = ()
    window: int = 0


class Lessons(Protocol):
    """Called by the wires of `llm` for what a service refuses or reveals; provided by `store.learned`."""

    def known(self, profile: Profile) -> Known: ...

    async def refuses(self, profile: Profile, field: str, *, reason: str) -> None:
        """Remember that the service of `profile` does not take `field`."""
        ...

    async def has_window(self, profile: Profile, tokens: int, *, reason: str) -> None:
        """Remember how large its window is."""
        ...


class Traces(Protocol):
    """Called by the wires of `llm` with each failed request; provided by `store.traces`."""

    async def keep(self, trace: Trace) -> None: ...


class Meter(Protocol):
    """Called by `llm.metered` around each request; provided by `store.usage`."""

    async def reserve(
        self, request: Request, profile: Profile, *, at_most: int, expected: Usage = NO_USAGE
    ) -> tuple[str, str]:
        """Insert an open reservation before the request, which may cost `at_most` micro-dollars.

        `expected` is what stands there if nobody ever settles it, because the process was killed.
        Gives its name, and a warning for the owner or nothing. Raises `BudgetError` when a budget would not hold.
        """
        ...

    async def settle(
        self, reservation: str, usage: Usage, *, state: Literal["done", "failed"], estimated: bool = False
    ) -> None:
        """Close a reservation that no turn's commit will close. `estimated`: nobody counted `usage` exactly."""
        ...
