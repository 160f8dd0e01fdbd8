"""Sessions recorded from the real assistant: what it would send to Anthropic and to Chat Completions, and when."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from msgspec import Raw, Struct, json, structs

from bench.fake import Fake
from bench.home import assistant, say, session
from limpet.agent.limits import Limits
from limpet.assistant.conversation import Conversation
from limpet.config.schema import Settings, ToolSettings, UserSettings
from limpet.config.secrets import SecretRedactor
from limpet.llm.prefix import PrefixCache
from limpet.llm.profiles import profile_of
from limpet.llm.tokens import estimate_request
from limpet.llm.wire import anthropic, openai_chat
from limpet.prompt.runtime import runtime_block
from limpet.prompt.templates import template
from limpet.prompt.workspace import WorkspacePrompting
from limpet.sandbox.run import Sandbox
from limpet.session.breaks import Break, breaks
from limpet.store import entries, sessions
from limpet.testing.clock import FakeClock
from limpet.testing.fakes.anthropic import AnthropicService
from limpet.testing.fakes.openai import OpenAIService
from limpet.testing.fakes.script import Rules, Seen
from limpet.testing.scripted import Answer, ScriptedModel, call
from limpet.toolbox import Toolbox
from limpet.types.content import Text, ToolCall
from limpet.types.entry import Note, PromptEntry
from limpet.types.envelope import InboxRow
from limpet.types.message import Request
from limpet.types.ports import Model
from limpet.types.profile import Profile
from limpet.types.tool import ToolSpec
from limpet.types.usage import Usage

MORNING = 1_780_297_200_000  # 2026-06-01T07:00:00Z
STEP = 8.0
"""Seconds that an answer takes."""
RECALLED = 8
"""Recalled memories that go with each message, of a hundred tokens each."""
HEARTBEAT = "Heartbeat: look at HEARTBEAT.md and at what waits; say HEARTBEAT_OK when nothing needs the owner. "
OLD_RULES = Profile(provider="openai", wire="openai_chat", model="gpt-5.5", cache_key=True)
WORDS = ("limpet", "rock", "tide", "shore", "holds", "water", "morning", "the", "and", "returns", "spot", "storm")


class Asked(Struct, frozen=True):
    """A request at second `at` of its scene, as both wires encode it."""

    at: float
    anthropic: bytes
    chat: bytes


class Recorded(Struct, frozen=True):
    """A scene: its requests in order, and what its log says about changes of the prefix (seconds, reason)."""

    name: str
    requests: list[Asked]
    breaks: list[tuple[float, str]]


class Scene:
    """One conversation on a stage of its own. `steps` are the tool calls that the next answers make first."""

    def __init__(self, clock: FakeClock, workspace: Path, *, window: int, seed: int) -> None:
        self.clock = clock
        self.workspace = workspace
        self.requests: list[Asked] = []
        self.steps: list[tuple[ToolCall, ...]] = []
        self.random = random.Random(seed)
        self.prompting: BenchPrompting | None = None
        self.talk: Conversation | None = None
        self.page = 6.2
        """Logarithm of the median length of what tools give back, in words."""
        self._files = 0
        profile = profile_of("anthropic", "claude-sonnet-5")
        self._profile = structs.replace(profile, window=window, token_factor=1.0)
        self._prefixes = (PrefixCache(), PrefixCache())
        self._services = (AnthropicService(), OpenAIService())
        self.model: Model = ScriptedModel([self._answer], profile=self._profile, forever=True)

    async def say(self, text: str, *, steps: int = 0, calls: int = 1) -> None:
        """One turn of `steps` answers with tool calls (`calls` in each) before the last one."""
        assert self.talk is not None
        self.steps = [tuple(self._read() for _ in range(calls)) for _ in range(steps)]
        await say(self.talk, text)

    def words(self, count: int) -> str:
        return " ".join(self.random.choices(WORDS, k=count))

    def _read(self) -> ToolCall:
        """A call that reads a new file, whose length is spread as that of results of tools."""
        self._files += 1
        name = f"pages/{self._files}.txt"
        count = min(6_000, int(self.random.lognormvariate(self.page, 1)))
        (self.workspace / "pages").mkdir(exist_ok=True)
        (self.workspace / name).write_text(self.words(count), encoding="utf-8")
        return call("read_file", {"path": name})

    def _answer(self, request: Request) -> Answer:
        bodies = (
            b"".join(anthropic.encode_request(request, self._profile, prefix=self._prefixes[0], blobs=None)),
            b"".join(openai_chat.encode_request(request, OLD_RULES, prefix=self._prefixes[1], blobs=None)),
        )
        for service, raw in zip(self._services, bodies, strict=True):
            _check(service, raw)
        self.requests.append(Asked(self.clock.monotonic(), *bodies))
        self.clock.advance(STEP)
        used = Usage(input=estimate_request(request), output=150)
        if template("digest")[:60] in _last_text(request):
            return Answer(f"<notes>\n</notes>\n<summary>\n{self.words(1_200)}\n</summary>", usage=used)
        if self.steps:
            return Answer(calls=self.steps.pop(0), usage=used)
        return Answer(self.words(140), usage=used)


def _check(service: AnthropicService | OpenAIService, raw: bytes) -> None:
    """Raises `Refused` when the strict fake would."""
    rules = Rules()
    headers = {"x-api-key": rules.key, "anthropic-version": "1", "authorization": f"Bearer {rules.key}"}
    service.check(Seen(service.path, headers, raw, json.decode(raw, type=dict[str, object])), rules)


def _last_text(request: Request) -> str:
    last = request.messages[-1].content[-1]
    return last.text if isinstance(last, Text) else ""


class BenchPrompting:
    """The workspace's prompt, with tools of MCP servers and recalled memories as they will be there."""

    def __init__(self, real: WorkspacePrompting, scene: Scene, tools: Sequence[ToolSpec]) -> None:
        self.tools = list(tools)
        self._real = real
        self._scene = scene

    def snapshot(self, profile: Profile, *, reason: str, before: str = "", key: str = "") -> PromptEntry:
        entry = self._real.snapshot(profile, reason=reason, before=before, key=key)
        return structs.replace(entry, tools=(*entry.tools, *sorted(self.tools, key=lambda tool: tool.name)))

    def memory(self, profile: Profile, *, key: str = "") -> str:
        return self._real.memory(profile, key=key)

    def changes(self, snapshot: PromptEntry, told: Sequence[Note]) -> list[Note]:
        return self._real.changes(snapshot, told)

    def folders(self, paths: Iterable[str], told: Sequence[Note]) -> list[Note]:
        return self._real.folders(paths, told)

    def stale(self, snapshot: PromptEntry) -> str:
        return self._real.stale(snapshot)

    def runtime(self, row: InboxRow, facts: Sequence[str] = ()) -> str:
        recalled = [f"Memory: {self._scene.words(80)}" for _ in range(RECALLED)]
        return runtime_block(self._scene.clock.now(), "UTC", facts=(*recalled, *facts))


def mcp_tool(number: int) -> ToolSpec:
    """A tool of some server, of about 170 tokens."""
    described = "Looks up what a limpet would like to know about its rock, its tide and its neighbours. " * 6
    schema = Raw(b'{"type":"object","properties":{"query":{"type":"string","description":"what to look for"}}}')
    return ToolSpec(name=f"mcp_shore_{number:02d}", description=described, parameters=schema)


@asynccontextmanager
async def stage(folder: Path, *, window: int, seed: int = 0) -> AsyncGenerator[Scene]:
    """A home with a full workspace, a clock that the scene moves, and the recorder for a model."""
    async with AsyncExitStack() as stack:
        services = await stack.enter_async_context(assistant(folder, Fake("http://127.0.0.1:9", "none", folder)))
        sandbox = await stack.enter_async_context(Sandbox())
        clock = FakeClock(MORNING)
        scene = Scene(clock, Path(services.workspace), window=window, seed=seed)
        (scene.workspace / "BOOTSTRAP.md").unlink(missing_ok=True)
        for name in ("MEMORY.md", "USER.md"):
            (scene.workspace / name).write_text(f"# {name}\n\n{scene.words(1_500)}\n", encoding="utf-8")
        real = WorkspacePrompting(
            services.workspace,
            Settings(user=UserSettings(timezone="UTC")),
            redactor=SecretRedactor({}),
            clock=clock,
            tools=Toolbox(sandbox, ToolSettings()).specs,
            conversation=True,
            emit=lambda event: None,
        )
        scene.prompting = BenchPrompting(real, scene, [mcp_tool(number) for number in range(20)])
        endless = Limits(tokens=1_000_000_000)
        own = replace(services, clock=clock, models=_Only(scene.model), prompting=scene.prompting, limits=endless)
        scene.talk = session(own, "bench")
        yield scene


class _Only:
    """`Models` with one model."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def get(self, reference: str) -> Model:
        return self._model


def _breaks(scene: Scene) -> list[tuple[float, str]]:
    assert scene.talk is not None
    store, key = scene.talk.services.store, scene.talk.key
    live = store.read(lambda connection: sessions.live(connection, key))
    assert live is not None
    found: list[Break] = breaks(store.read(lambda connection: entries.load(connection, live.id)))
    return [((one.at - MORNING) / 1_000, one.why) for one in found]


# --- scenes -------------------------------------------------------------------------------------------------------


async def chat(scene: Scene, turns: int) -> None:
    """Talk, with pauses of one to twenty minutes."""
    for _ in range(turns):
        await scene.say(scene.words(55))
        scene.clock.advance(scene.random.uniform(60, 1_200))


async def tools(scene: Scene, turns: int) -> None:
    """Loops of up to eight steps, answers with five calls, one loop of thirty steps."""
    scene.page = 4.6
    for number in range(turns):
        await scene.say(scene.words(55), steps=30 if number == turns // 2 else number % 9, calls=1 + 4 * (number % 2))
        scene.clock.advance(scene.random.uniform(60, 600))


async def memory(scene: Scene, turns: int) -> None:
    """MEMORY.md grows between turns."""
    for number in range(turns):
        await scene.say(scene.words(55))
        if number % 5 == 4:
            with open(scene.workspace / "MEMORY.md", "a", encoding="utf-8") as file:
                file.write(f"- {scene.words(20)}\n")
        scene.clock.advance(scene.random.uniform(60, 600))


async def reconnect(scene: Scene, turns: int) -> None:
    """A server lists its tools in another order, and more of them."""
    assert scene.prompting is not None
    for number in range(turns):
        await scene.say(scene.words(55), steps=number % 3)
        if number % 10 == 9:
            scene.random.shuffle(scene.prompting.tools)
            scene.prompting.tools.append(mcp_tool(20 + number))
        scene.clock.advance(scene.random.uniform(60, 600))


async def midnight(scene: Scene, turns: int) -> None:
    """Every other hour, over several days."""
    for _ in range(turns):
        await scene.say(scene.words(55))
        scene.clock.advance(2 * 3_600)


async def full(scene: Scene, turns: int) -> None:
    """A window that is full again and again."""
    await chat(scene, turns)


async def day(scene: Scene, turns: int) -> None:
    """From eight to ten in the evening: bursts of chat with tools, pauses, and a heartbeat each half hour."""
    begin, end = 8 * 3_600.0, 22 * 3_600.0
    events: list[tuple[float, int]] = [(begin + beat, -1) for beat in range(0, 14 * 3_600, 1_800)]
    now = begin
    while now < end:
        for _ in range(scene.random.randint(1, 6)):
            events.append((now, scene.random.choice((0, 0, 1, 1, 2, 3, 5, 8))))
            now += scene.random.expovariate(1 / 100) + 20
        now += scene.random.expovariate(1 / 4_000) + 600
    for at, steps in sorted(events)[: turns if turns < 50 else None]:
        scene.clock.advance(max(0.0, at - begin - scene.clock.monotonic()))
        await scene.say(scene.words(55) if steps >= 0 else HEARTBEAT * 5, steps=max(0, steps))


LARGE, SMALL, DAY = 1_000_000, 48_000, 88_000
SCENES: dict[str, tuple[Callable[[Scene, int], Awaitable[None]], int]] = {
    "chat": (chat, LARGE),
    "tools": (tools, LARGE),
    "memory writes": (memory, LARGE),
    "MCP reconnects": (reconnect, LARGE),
    "days change": (midnight, LARGE),
    "small window": (full, SMALL),
    "a day": (day, DAY),
}
"""Each with the tokens of its window; that of the day leaves about 60,000 for the history."""


async def record(name: str, folder: Path, *, turns: int, seed: int = 0) -> Recorded:
    """Play a scene."""
    play, window = SCENES[name]
    async with stage(folder, window=window, seed=seed) as scene:
        await play(scene, turns)
        return Recorded(name, scene.requests, _breaks(scene))
