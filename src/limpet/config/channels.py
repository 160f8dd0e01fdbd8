"""Settings of the gateway and of each channel: one table `[channels.KIND.ACCOUNT]` for each account."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, convert, field

from limpet.types.envelope import QueueMode

Count = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]
Port = Annotated[int, Meta(ge=0, le=65535)]

DirectPolicy = Literal["pairing", "allowlist", "open", "disabled"]
Progress = Literal["off", "brief", "full"]


class ChannelSettings(Struct, frozen=True):
    """What every channel has. People and groups are stable ids of the platform, never names that people give
    themselves.

    `direct` says who may speak to the agent alone: `pairing`: those with a code the owner has approved. `owners` are
    the owner's own accounts, `allow` others that may speak. `groups`: in which groups the agent answers, `*` = all it
    is in; there `mention` has it answer only when it is meant, and `group_allow` only these people (empty: everybody
    there). `to_all`: a message to everybody means it too. `agent` is who answers. `live`: an answer is shown while it
    is written. `progress`: tools are shown while they run. `reactions`: the message being worked on is marked.
    `queue`: what becomes of messages while a turn runs; empty: as `gateway.queue` says. `per_minute` is how many
    messages of one person are taken in a minute.
    """

    enabled: bool = True
    direct: DirectPolicy = "pairing"
    owners: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    group_allow: tuple[str, ...] = ()
    mention: bool = True
    to_all: bool = False
    agent: str = "main"
    live: bool = True
    progress: Progress = "off"
    reactions: bool = True
    queue: QueueMode | Literal[""] = ""
    per_minute: Count = 30


class TelegramSettings(ChannelSettings, frozen=True):
    """A bot. `token` may be a reference to a secret; `proxy` is that of an HTTP proxy.

    `resend_on_5xx`: what a gateway of Telegram's may have lost or not is sent again, and so may stand there twice.
    """

    token: str = ""
    base_url: str = "https://api.telegram.org"
    proxy: str = ""
    resend_on_5xx: bool = False


class DiscordSettings(ChannelSettings, frozen=True):
    """A bot. `token` may be a reference to a secret; `proxy` is that of an HTTP proxy."""

    token: str = ""
    base_url: str = "https://discord.com/api/v10"
    proxy: str = ""


class SlackSettings(ChannelSettings, frozen=True):
    """An app in one workspace. Both tokens may be references to secrets; `proxy` is that of an HTTP proxy.

    `threads`: what means the agent in a channel is answered in a thread of its own, which is a conversation of its own.
    """

    bot_token: str = ""
    app_token: str = ""
    threads: bool = False
    base_url: str = "https://slack.com/api"
    proxy: str = ""


class ChannelsSettings(Struct, frozen=True):
    """Accounts on chat platforms, by kind and a name of their own."""

    telegram: dict[str, TelegramSettings] = field(default_factory=dict[str, TelegramSettings])
    discord: dict[str, DiscordSettings] = field(default_factory=dict[str, DiscordSettings])
    slack: dict[str, SlackSettings] = field(default_factory=dict[str, SlackSettings])


def accounts(channels: ChannelsSettings) -> dict[tuple[str, str], ChannelSettings]:
    """The settings of all accounts, by kind and name."""
    kinds = convert(
        {kind: getattr(channels, kind) for kind in channels.__struct_fields__}, dict[str, dict[str, object]]
    )
    return {
        (kind, name): one
        for kind, named in kinds.items()
        for name, one in named.items()
        if isinstance(one, ChannelSettings)
    }


class BindingSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Which agent answers: all conditions that are named have to hold. See docs/gateway.md for the order."""

    agent: str
    channel: str = ""
    account: str = ""
    peer: str = ""
    chat: str = ""
    parent: str = ""
    space: str = ""
    roles: tuple[str, ...] = ()


class DeliverySettings(Struct, frozen=True):
    """`tries` before a message is given up, and `minutes` after which it is too old to be sent."""

    tries: Count = 5
    minutes: Annotated[float, Meta(gt=0)] = 720.0


class GatewaySettings(Struct, frozen=True):
    """`turns` is how many run at once. `queue`: what becomes of messages while a turn runs (docs/gateway.md).

    `debounce` is seconds of silence before they are handed to a running turn; of more than `most` the oldest are
    shortened. `host` and `port` (0 = none) are where the server listens, `token` is what clients of it have to show.
    """

    turns: Count = 8
    queue: QueueMode = "steer"
    debounce: Annotated[float, Meta(ge=0)] = 0.5
    most: Count = 20
    bindings: tuple[BindingSettings, ...] = field(default_factory=tuple[BindingSettings, ...])
    delivery: DeliverySettings = DeliverySettings()
    host: str = "127.0.0.1"
    port: Port = 8790
    token: str = ""
