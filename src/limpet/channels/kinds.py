"""The kinds of channels: where the code of each is. Settings of a kind stand under `channels.KIND`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from limpet.types.ports import Clock

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "irc": "limpet.channels.irc.channel:make",
        "matrix": "limpet.channels.matrix.channel:make",
        "discord": "limpet.channels.discord.channel:make",
        "slack": "limpet.channels.slack.channel:make",
        "telegram": "limpet.channels.telegram.channel:make",
        "xmpp": "limpet.channels.xmpp.channel:make",
        "mqtt": "limpet.channels.mqtt.channel:make",
        "email": "limpet.channels.email.channel:make",
        "notify": "limpet.channels.notify.channel:make",
    }
)
"""Kind to `module:function` of what makes its channel: `make(account, settings, means)`, `settings` of its kind."""


@dataclass(frozen=True, slots=True)
class Means:
    """What a channel is made with. `secret` gives the value of a setting that may be a reference to a secret.

    `folder` is where this account may keep files between runs (absolute, made when used; mode 700). `blob` gives the
    path of what is to be sent (`Attachment.blob`), and raises `FileNotFoundError`.
    """

    clock: Clock
    folder: str
    secret: Callable[[str], str]
    blob: Callable[[str], str]
