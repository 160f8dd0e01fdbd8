"""Every setting with its default. The keys of `config.toml` are the field names; docs/config.md shows them all."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

CURRENT_VERSION = 1

Count = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]
Amount = Annotated[float, Meta(gt=0)]
Days = Annotated[int, Meta(ge=0)]
Money = Annotated[float, Meta(ge=0)]


class Limits(Struct, frozen=True):
    """What one turn may use up. `dollars` counts only where the price of the model is known."""

    steps: Count = 200
    minutes: Amount = 30.0
    dollars: Amount = 1.0


class AgentSettings(Struct, frozen=True):
    """`model` is `provider/model`, empty = choose by what is at hand; `workspace` empty = in the home."""

    model: str = ""
    workspace: str = ""
    limits: Limits = Limits()


class ProviderSettings(Struct, frozen=True):
    """One model service. `api_key` is a secret reference: `env:NAME`, `file:PATH`, or the key itself.

    `api_keys` are further ones, used in their order when the one before is refused, limited or out of money.

    `model` is the one to use when only the provider is named. `window` is the context window in tokens when the
    service does not tell it, 0 = not known.
    """

    api_key: str = ""
    api_keys: tuple[str, ...] = ()
    base_url: str = ""
    model: str = ""
    wire: Literal["", "openai_chat", "openai_responses", "anthropic", "gemini", "bedrock"] = ""
    local: bool | None = None
    window: Annotated[int, Meta(ge=0)] = 0
    headers: dict[str, str] = field(default_factory=dict[str, str])


class ChatPurpose(Struct, frozen=True):
    """How requests of a conversation are made; None is the provider's own. Their model is `agent.model`."""

    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    max_tokens: Count | None = None
    tool_choice: Literal["auto", "none"] | None = None
    thinking: Literal["off", "low", "medium", "high"] | None = None


class Purpose(ChatPurpose, frozen=True):
    """How requests of another purpose are made; what is empty or None is as for the chat."""

    model: str = ""


class EmbeddingPurpose(Struct, frozen=True):
    model: str = ""


class TranscriptionPurpose(Struct, frozen=True):
    """`model` is asked, or `command` is run: `{file}` stands for the recording, `{output}` for a file it writes.

    `language` is a code such as `de`, empty = found out. `timeout` is for the command, in seconds.
    """

    model: str = ""
    command: tuple[str, ...] = ()
    timeout: Seconds = 300.0
    language: str = ""
    temperature: Annotated[float, Meta(ge=0, le=1)] | None = None


class SpeechPurpose(Struct, frozen=True):
    """`voice` empty = the service's usual one."""

    model: str = ""
    voice: str = ""
    format: Literal["mp3", "opus", "aac", "flac", "wav", "pcm"] = "mp3"


class ImagePurpose(Struct, frozen=True):
    """`size` is `WIDTHxHEIGHT`, `quality` a word of the service; empty = what the service does by itself."""

    model: str = ""
    size: str = ""
    quality: str = ""


class PurposeSettings(Struct, frozen=True):
    """What models are used for, each with a model and settings of its own."""

    chat: ChatPurpose = ChatPurpose()
    summary: Purpose = Purpose()
    heartbeat: Purpose = Purpose()
    cron: Purpose = Purpose()
    subagent: Purpose = Purpose()
    vision: Purpose = Purpose()
    embedding: EmbeddingPurpose = EmbeddingPurpose()
    transcription: TranscriptionPurpose = TranscriptionPurpose()
    speech: SpeechPurpose = SpeechPurpose()
    image: ImagePurpose = ImagePurpose()


class ModelsSettings(Struct, frozen=True):
    """`fallbacks` are models (`provider/model`) that stand in, in their order, when the usual one cannot answer.

    A model that was chosen by name (`--model`, `/model`) is only replaced when `replace_chosen` allows it.
    `aliases` are short names for models.
    """

    fallbacks: tuple[str, ...] = ()
    replace_chosen: bool = False
    aliases: dict[str, str] = field(default_factory=dict[str, str])
    purposes: PurposeSettings = PurposeSettings()


class BudgetSettings(Struct, frozen=True):
    """Dollars that may be spent at the most, 0 = no limit. What one turn may cost is `agent.limits.dollars`."""

    session: Money = 0.0
    day: Money = 0.0
    agent_day: Money = 0.0


class ExecSettings(Struct, frozen=True):
    """Limits of one command: MB of memory, processes, bytes of output kept."""

    memory_mb: Count = 2048
    processes: Count = 256
    output: Count = 8_388_608


class SandboxSettings(Struct, frozen=True):
    """`auto`: in the sandbox where there is one, else every command asks. `ask`: every command asks as well."""

    mode: Literal["auto", "ask"] = "auto"


class ToolSettings(Struct, frozen=True):
    exec: ExecSettings = ExecSettings()
    sandbox: SandboxSettings = SandboxSettings()


class StoreSettings(Struct, frozen=True):
    """`full`: each commit is on the disk before anything else happens. `normal`: a power cut may cost the last.

    `keep_days` is how long rows of what came in and went out stay after they are done with, 0 = for ever.
    """

    durability: Literal["full", "normal"] = "full"
    keep_days: Days = 90


class UserSettings(Struct, frozen=True):
    """`timezone` is an IANA name such as `Europe/Lisbon`, empty = the system's."""

    name: str = ""
    timezone: str = ""


class ResetSettings(Struct, frozen=True):
    """When a conversation begins anew by itself: after `idle` minutes (0 = never), at the hour `daily` (-1 = never)."""

    idle: Annotated[int, Meta(ge=0)] = 0
    daily: Annotated[int, Meta(ge=-1, le=23)] = -1


SessionKind = Literal["main", "cli", "web", "api", "direct", "group", "thread", "cron", "hook", "subagent"]


class SessionsSettings(Struct, frozen=True):
    """`reset` is for all conversations, `reset_by_kind` for those of one kind, which it replaces as a whole.

    `scope` says which direct chats share a conversation, `links` which accounts are one person. `keep_days` and
    `archive_days` count from the end of a conversation and from its archiving, 0 = for ever. `visibility` is which
    other conversations the agent may look into and speak to.
    """

    reset: ResetSettings = ResetSettings()
    reset_by_kind: dict[SessionKind, ResetSettings] = field(default_factory=dict[SessionKind, ResetSettings])
    scope: Literal["main", "peer", "channel-peer", "account-channel-peer"] = "channel-peer"
    links: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    keep_days: Days = 0
    archive_days: Days = 0
    visibility: Literal["self", "tree", "agent", "all"] = "agent"


class ContextSettings(Struct, frozen=True):
    """What happens when the window is full: `summarise` the older part, or drop the oldest turns (`sliding`)."""

    mode: Literal["summarise", "sliding"] = "summarise"


class PromptSettings(Struct, frozen=True):
    """Characters of one workspace file, and of all together, that go into the prompt."""

    file_cap: Count = 20_000
    total_cap: Count = 60_000


class LlmSettings(Struct, frozen=True):
    """Deadlines of a request in seconds; servers on this machine get `local_factor` times as long.

    `first_byte` is the wait for the answer to begin, `idle` the longest gap between two pieces of content.
    """

    connect: Seconds = 10.0
    first_byte: Seconds = 60.0
    idle: Seconds = 60.0
    total: Seconds = 600.0
    local_factor: Amount = 5.0


class Settings(Struct, frozen=True):
    """Everything that can be configured."""

    version: Count = CURRENT_VERSION
    agent: AgentSettings = AgentSettings()
    models: ModelsSettings = ModelsSettings()
    budgets: BudgetSettings = BudgetSettings()
    providers: dict[str, ProviderSettings] = field(default_factory=dict[str, ProviderSettings])
    tools: ToolSettings = ToolSettings()
    store: StoreSettings = StoreSettings()
    user: UserSettings = UserSettings()
    prompt: PromptSettings = PromptSettings()
    sessions: SessionsSettings = SessionsSettings()
    context: ContextSettings = ContextSettings()
    llm: LlmSettings = LlmSettings()
