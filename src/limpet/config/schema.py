"""Every setting with its default. The keys of `config.toml` are the field names; docs/config.md shows them all."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from limpet.config.api import ApiSettings
from limpet.config.channels import ChannelsSettings, GatewaySettings
from limpet.config.hooks import HookSettings
from limpet.config.webhooks import WebhooksSettings

CURRENT_VERSION = 1

Count = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]
Amount = Annotated[float, Meta(gt=0)]
Days = Annotated[int, Meta(ge=0)]
Money = Annotated[float, Meta(ge=0)]
Tokens = Annotated[int, Meta(ge=0)]
Address = Annotated[
    str, Meta(pattern=r"^\s*$|^(?i:https?)://[^\s/]", description="an address that begins with http:// or https://")
]


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
    service does not tell it, 0 = not known. Without `streaming` the whole answer is asked for at once.
    """

    api_key: str = ""
    api_keys: tuple[str, ...] = ()
    base_url: Address = ""
    model: str = ""
    wire: Literal["", "openai_chat", "openai_responses", "anthropic", "gemini", "bedrock"] = ""
    local: bool | None = None
    window: Tokens = 0
    streaming: bool = True
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


class PriceSettings(Struct, frozen=True):
    """Dollars per million tokens. `input` and `output` belong together; unset: what the catalogs say."""

    input: Money | None = None
    output: Money | None = None
    cache_read: Money = 0.0
    cache_write: Money = 0.0


class FactSettings(Struct, frozen=True):
    """What is known of one model, over what the catalogs say. Tokens; 0 or unset: what they say."""

    window: Tokens = 0
    max_output: Tokens = 0
    images: bool | None = None
    price: PriceSettings = PriceSettings()


class ModelsSettings(Struct, frozen=True):
    """`fallbacks` are models (`provider/model`) that stand in, in their order, when the usual one cannot answer.

    A model that was chosen by name (`--model`, `/model`) is only replaced when `replace_chosen` allows it.
    `aliases` are short names for models. `catalog` holds facts by `provider/model`.
    """

    fallbacks: tuple[str, ...] = ()
    replace_chosen: bool = False
    aliases: dict[str, str] = field(default_factory=dict[str, str])
    purposes: PurposeSettings = PurposeSettings()
    catalog: dict[str, FactSettings] = field(default_factory=dict[str, FactSettings])


class BudgetSettings(Struct, frozen=True):
    """Dollars that may be spent at the most, 0 = no limit. What one turn may cost is `agent.limits.dollars`."""

    session: Money = 0.0
    day: Money = 0.0
    agent_day: Money = 0.0


class ExecSettings(Struct, frozen=True):
    """Limits of one command: MB of memory, processes, bytes of output kept.

    `network` is what a sandboxed command sees: nothing, the hosts of `egress` through a proxy, or everything.
    `secrets` are variables (to secret references) that every command is given, and can read.
    """

    memory_mb: Count = 2048
    processes: Count = 256
    output: Count = 8_388_608
    network: Literal["none", "allow-list", "open"] = "none"
    secrets: dict[str, str] = field(default_factory=dict[str, str])


class SandboxSettings(Struct, frozen=True):
    """`auto`: in the sandbox where there is one, else every command asks. `ask`: every command asks as well."""

    mode: Literal["auto", "ask"] = "auto"


class SearchSettings(Struct, frozen=True):
    """What `web_search` asks. `key` (of Brave or Tavily) is a secret reference, `url` the address of a SearXNG.

    `engine` empty: what there is a key, an address, or for DuckDuckGo the package `ddgs` for.
    """

    engine: Literal["", "brave", "tavily", "searxng", "duckduckgo"] = ""
    key: str = ""
    url: str = ""


class WebSettings(Struct, frozen=True):
    search: SearchSettings = SearchSettings()


class BrowserSettings(Struct, frozen=True):
    """`executable` is a Chromium, empty = one of the usual names on the path; `timeout` is seconds for a page."""

    enabled: bool = True
    executable: str = ""
    headless: bool = True
    idle_minutes: Amount = 10.0
    timeout: Seconds = 30.0


class ToolSettings(Struct, frozen=True):
    exec: ExecSettings = ExecSettings()
    sandbox: SandboxSettings = SandboxSettings()
    web: WebSettings = WebSettings()
    browser: BrowserSettings = BrowserSettings()


ProfileName = Literal["minimal", "messaging", "coding", "full"]


class RuleSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """One rule of policy: all conditions that it names have to hold. See docs/policy.md for each."""

    decision: Literal["allow", "ask", "deny"]
    name: str = ""
    tool: str = "*"
    argument: dict[str, str] = field(default_factory=dict[str, str])
    path: str = ""
    host: str = ""
    command: tuple[Annotated[str, Meta(min_length=1)], ...] = ()
    channel: str = ""
    sender: str = ""
    agent: str = ""
    trust: Literal["", "owner", "peer", "tool", "external"] = ""
    even: tuple[Literal["danger", "taint"], ...] = ()
    reason: str = ""


class ExecPolicySettings(Struct, frozen=True):
    """`list`: a command runs only when each simple command in it begins with one of `allow`; else `otherwise`."""

    mode: Literal["open", "list"] = "open"
    allow: tuple[str, ...] = ()
    otherwise: Literal["ask", "deny"] = "ask"


class PolicySettings(Struct, frozen=True):
    """What may run unasked. `profile` says which tools there are; for one agent, channel or sender it can be less.

    `peers` counts as soon as others than the owner speak in a turn.
    """

    profile: ProfileName = "full"
    peers: ProfileName = "messaging"
    agents: dict[str, ProfileName] = field(default_factory=dict[str, ProfileName])
    channels: dict[str, ProfileName] = field(default_factory=dict[str, ProfileName])
    senders: dict[str, ProfileName] = field(default_factory=dict[str, ProfileName])
    exec: ExecPolicySettings = ExecPolicySettings()
    rules: tuple[RuleSettings, ...] = ()


class ApprovalSettings(Struct, frozen=True):
    """After so many minutes without an answer it is no."""

    minutes: Amount = 60.0


class HelperSettings(Struct, frozen=True):
    """`depth` is how deep helpers may have helpers (1: none). `each` and `all` are how many work at once for one
    conversation, and in all; `steps`, `minutes` and `dollars` bound each turn of one."""

    depth: Annotated[int, Meta(ge=1, le=3)] = 1
    each: Count = 5
    all: Count = 8
    steps: Count = 100
    minutes: Amount = 15.0
    dollars: Amount = 0.5


class ServerSettings(Struct, frozen=True):
    """One MCP server: a program (`command`, `args`) that is started, or an address (`url`) that is asked.

    `env` and `headers` may hold secret references; a program gets no other variables but a few harmless ones. `tools`
    names those that are offered, empty = all. `allow` names those that run without asking, `read_only` those that
    change nothing; `*` there: all, and all that the server itself calls read-only. `timeout` is seconds for one call,
    `start` for starting. Results are `external`, written by strangers, unless `trust` is `tool`. `sandbox` isolates the
    program like a command: it can write the workspace only, read the folders `reads` besides, and has this `network`.
    """

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict[str, str])
    cwd: str = ""
    url: Address = ""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    enabled: bool = True
    timeout: Seconds = 60.0
    start: Seconds = 30.0
    tools: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    trust: Literal["external", "tool"] = "external"
    sandbox: bool = False
    network: Literal["none", "open"] = "none"
    reads: tuple[str, ...] = ()


class ScheduleSettings(Struct, frozen=True):
    """`parallel` is how many runs of jobs there may be at once. `keep_days` is how long the sessions of runs stay
    before they go into the archive, 0 = for ever."""

    parallel: Count = 4
    keep_days: Days = 30


class HeartbeatSettings(Struct, frozen=True):
    """HEARTBEAT.md is looked at every so many `minutes` (0 = never), within the hours `active` (such as `08:00-23:00`,
    empty = always) of `user.timezone`. `deliver`: alerts go to the owner's newest chat, or nowhere."""

    minutes: Annotated[int, Meta(ge=0, le=1440)] = 30
    active: Annotated[str, Meta(pattern=r"^$|^([01]?\d|2[0-3]):[0-5]\d-(([01]?\d|2[0-3]):[0-5]\d|24:00)$")] = ""
    deliver: Literal["last", "none"] = "last"


class McpSettings(Struct, frozen=True):
    """Servers of tools by name. `wait` is how many seconds a start of Limpet waits for those it does not know yet."""

    wait: Annotated[float, Meta(ge=0)] = 2.0
    servers: dict[str, ServerSettings] = field(default_factory=dict[str, ServerSettings])


class TrustedPlugin(Struct, frozen=True):
    """What the owner trusts a plug-in in: its version, and the SHA-256 over its files."""

    version: str = ""
    digest: str = ""


class PluginsSettings(Struct, frozen=True):
    """Plug-ins by the name of their distribution; no other is imported. `limpet plugins trust` writes the table.

    `timeout` is seconds for a call of one of their tools, `hook_timeout` for one hook.
    """

    timeout: Seconds = 300.0
    hook_timeout: Seconds = 5.0
    trusted: dict[str, TrustedPlugin] = field(default_factory=dict[str, TrustedPlugin])


class SkillsSettings(Struct, frozen=True):
    """`extra` are further folders with skills, looked at last; `disabled` are left out wherever they lie.

    `bundled`: those that come with Limpet. `index_chars` is what the list of skills may take of the prompt. `registry`
    is where `limpet skills install clawhub:NAME` asks.
    """

    bundled: bool = True
    extra: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    index_chars: Count = 8_000
    registry: Address = "https://clawhub.ai"


class NetSettings(Struct, frozen=True):
    """What tools may reach. `allow_cidrs` are networks besides the public internet; where `allow_hosts` has patterns,
    only such names, and never those of `deny_hosts`. `proxy` is an http proxy for all of it."""

    allow_cidrs: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    deny_hosts: tuple[str, ...] = ()
    proxy: str = ""


class EgressSecret(Struct, frozen=True):
    """`secret` is a reference; its value is put into requests to `hosts`, and only there."""

    secret: str = ""
    hosts: tuple[str, ...] = ()


class EgressSettings(Struct, frozen=True):
    """What commands reach with `tools.exec.network` = `allow-list`: `hosts` (`name`, `*.domain`, with `:port`).

    `secrets` are by the variable in which a command finds a stand-in for the value; their hosts are reached too.
    """

    hosts: tuple[str, ...] = ()
    secrets: dict[str, EgressSecret] = field(default_factory=dict[str, EgressSecret])


class StoreSettings(Struct, frozen=True):
    """`full`: each commit is on the disk before anything else happens. `normal`: a power cut may cost the last.

    `keep_days` is how long rows of what came in and went out stay after they are done with, 0 = for ever.
    """

    durability: Literal["full", "normal"] = "full"
    keep_days: Days = 90


class UndoSettings(Struct, frozen=True):
    """Copies of what turns change: kept for `days` (0 = none), in all at most `total_mb`.

    Files over `file_mb`, and those beyond `turn_mb` in one turn, are not kept.
    """

    days: Annotated[int, Meta(ge=0)] = 14
    total_mb: Count = 1_000
    turn_mb: Count = 200
    file_mb: Count = 10


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


class MemorySettings(Struct, frozen=True):
    """`cap` is the characters of MEMORY.md from which Limpet names what could go. `bound` lists by a name the
    conversations that share a memory (`telegram:direct:42`, `telegram:group:-100`); `owner` is the owner's own.

    Day notes are consolidated every `consolidate_hours` (0 = never), or once there are `consolidate_lines` new ones.
    `recall`: what memory holds goes with a message, from the share `recall_score` of its words on, with one of
    a job or a heartbeat only if `recall_unasked`. `vectors`: a local embedder where the extra `vectors` is installed
    and no model is set for it. `watch`: processes that stay see changes of files at once, with the extra `watch`.
    """

    cap: Count = 12_000
    bound: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    consolidate_hours: Annotated[int, Meta(ge=0)] = 24
    consolidate_lines: Count = 60
    recall: bool = True
    recall_score: Annotated[float, Meta(ge=0, le=1)] = 0.45
    recall_unasked: bool = False
    vectors: Literal["auto", "off"] = "auto"
    watch: Literal["auto", "off"] = "auto"


class ContextSettings(Struct, frozen=True):
    """What happens when the window is full: `summarise` the older part, or drop the oldest turns (`sliding`)."""

    mode: Literal["summarise", "sliding"] = "summarise"


class PromptSettings(Struct, frozen=True):
    """Characters of one workspace file, and of all together, that go into the prompt.

    `refresh_when_cold`: once the provider's cache has expired, changed files make a new prompt instead of notes.
    """

    file_cap: Count = 20_000
    total_cap: Count = 60_000
    refresh_when_cold: bool = False


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
    agents: dict[str, AgentSettings] = field(default_factory=dict[str, AgentSettings])
    models: ModelsSettings = ModelsSettings()
    budgets: BudgetSettings = BudgetSettings()
    providers: dict[str, ProviderSettings] = field(default_factory=dict[str, ProviderSettings])
    tools: ToolSettings = ToolSettings()
    policy: PolicySettings = PolicySettings()
    approvals: ApprovalSettings = ApprovalSettings()
    helpers: HelperSettings = HelperSettings()
    gateway: GatewaySettings = GatewaySettings()
    channels: ChannelsSettings = ChannelsSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    heartbeat: HeartbeatSettings = HeartbeatSettings()
    mcp: McpSettings = McpSettings()
    plugins: PluginsSettings = PluginsSettings()
    hooks: tuple[HookSettings, ...] = ()
    webhooks: WebhooksSettings = WebhooksSettings()
    api: ApiSettings = ApiSettings()
    skills: SkillsSettings = SkillsSettings()
    net: NetSettings = NetSettings()
    egress: EgressSettings = EgressSettings()
    store: StoreSettings = StoreSettings()
    undo: UndoSettings = UndoSettings()
    user: UserSettings = UserSettings()
    prompt: PromptSettings = PromptSettings()
    sessions: SessionsSettings = SessionsSettings()
    memory: MemorySettings = MemorySettings()
    context: ContextSettings = ContextSettings()
    llm: LlmSettings = LlmSettings()
