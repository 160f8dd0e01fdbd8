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


class IrcSettings(ChannelSettings, frozen=True):
    """A nick on an IRC network. `password` is the server's, `account` and `account_password` are for `login`.

    `ca` is a file with the certificate that signs the server's, where it is one's own. `join`: channels, each with its
    key behind a blank where it has one. At most `burst` messages are sent at once, then one each `pause` seconds.
    """

    server: str = ""
    port: Port = 6697
    tls: bool = True
    ca: str = ""
    nick: str = "limpet"
    realname: str = ""
    password: str = ""
    account: str = ""
    account_password: str = ""
    login: Literal["sasl", "nickserv"] = "sasl"
    join: tuple[str, ...] = ()
    burst: Count = 5
    pause: Annotated[float, Meta(ge=0)] = 2.0


class XmppSettings(ChannelSettings, frozen=True):
    """An account. `password` may be a reference; `host` and `port` are for servers that the domain does not name.

    `ca` is a file with the certificate that signs the server's, where it is one's own. `rooms` are addresses of rooms
    to be in, as `nick` (empty: the name of the account). `resource` names this connection among others of the account.
    """

    jid: str = ""
    password: str = ""
    host: str = ""
    port: Port = 5222
    tls: bool = True
    ca: str = ""
    resource: str = "limpet"
    nick: str = ""
    rooms: tuple[str, ...] = ()


class MatrixSettings(ChannelSettings, frozen=True):
    """An account. `password` or `token` may be references; `device` names this program among others of the account.

    `invites`: whose invitations to rooms are followed: of `owners` and `allow` (`known`), of `all`, of `none`.
    `encryption` needs the extra `matrix-e2e`.
    """

    homeserver: str = ""
    user: str = ""
    password: str = ""
    token: str = ""
    device: str = "LIMPET"
    invites: Literal["known", "all", "none"] = "known"
    encryption: bool = False


class MqttSettings(ChannelSettings, frozen=True):
    """A broker and the devices on it. In the topics `{device}` stands for the level that is a device's id.

    `port` 0 is 1883, with `tls` 8883; `ca` is a file of certificates that are trusted instead of the system's.
    `client_id` names us to the broker, which keeps messages for that name; empty: one is made and kept. `payload` is
    how answers are written, `limit` the bytes of text of one of them. `password` may be a reference to a secret.
    """

    host: str = ""
    port: Port = 0
    tls: bool = False
    ca: str = ""
    user: str = ""
    password: str = ""
    client_id: str = ""
    topic_in: str = "limpet/{device}/in"
    topic_out: str = "limpet/{device}/out"
    topic_status: str = "limpet/status"
    payload: Literal["text", "json"] = "text"
    limit: Annotated[int, Meta(ge=100)] = 4_000


class EmailSettings(ChannelSettings, frozen=True):
    """A mailbox by IMAP and the way out by SMTP. `user` empty: the address; `password` may be a reference to a secret.

    People are known by addresses in lower case, and those whose mail the receiving server has not checked by
    `unverified:ADDRESS`; `authserv` is the name under which that server writes what it found. Unlike elsewhere,
    strangers get no code: who sends under a false name must not have us write to others. `ca` is a file of
    certificates that are trusted instead of the system's; of mails above `largest` bytes only the header is read.
    """

    direct: DirectPolicy = "allowlist"
    address: str = ""
    display: str = ""
    user: str = ""
    password: str = ""
    imap_host: str = ""
    imap_port: Port = 993
    imap_tls: bool = True
    smtp_host: str = ""
    smtp_port: Port = 465
    smtp_tls: Literal["tls", "starttls", "off"] = "tls"
    ca: str = ""
    mailbox: str = "INBOX"
    authserv: str = ""
    largest: Count = 25_000_000


class NotifySettings(ChannelSettings, frozen=True):
    """Services that only take messages. `targets` are addresses in `apprise`'s form by names of yours.

    Such an address has the keys of its service in it, and so should be a reference to a secret.
    """

    targets: dict[str, str] = field(default_factory=dict[str, str])
    title: str = "Limpet"


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
    irc: dict[str, IrcSettings] = field(default_factory=dict[str, IrcSettings])
    matrix: dict[str, MatrixSettings] = field(default_factory=dict[str, MatrixSettings])
    xmpp: dict[str, XmppSettings] = field(default_factory=dict[str, XmppSettings])

    mqtt: dict[str, MqttSettings] = field(default_factory=dict[str, MqttSettings])
    email: dict[str, EmailSettings] = field(default_factory=dict[str, EmailSettings])
    notify: dict[str, NotifySettings] = field(default_factory=dict[str, NotifySettings])

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
    shortened. `drain` is seconds that turns have to finish when the gateway is ended. `host` and `port` (0 = none) are
    where the server listens, `token` is what clients of it have to show.
    """

    turns: Count = 8
    queue: QueueMode = "steer"
    debounce: Annotated[float, Meta(ge=0)] = 0.5
    most: Count = 20
    drain: Annotated[float, Meta(ge=0)] = 6.0
    bindings: tuple[BindingSettings, ...] = field(default_factory=tuple[BindingSettings, ...])
    delivery: DeliverySettings = DeliverySettings()
    host: str = "127.0.0.1"
    port: Port = 8790
    token: str = ""
