"""The channels of the gateway, opened as the settings want them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Protocol, TypeGuard

from limpet import wiring
from limpet.channels.kinds import KINDS, Means
from limpet.channels.webhook import channel as webhook
from limpet.cli.group import load
from limpet.config.channels import ChannelSettings, accounts
from limpet.config.paths import Home
from limpet.config.schema import Settings
from limpet.config.secrets import resolve
from limpet.errors import ConfigError
from limpet.gateway import programs
from limpet.net.client import Web
from limpet.server.api.channel import SETTINGS as API_SETTINGS
from limpet.server.api.channel import ApiChannel
from limpet.server.channel import ACCOUNT, WebChannel
from limpet.server.channel import NAME as WEB
from limpet.server.channel import SETTINGS as WEB_SETTINGS
from limpet.store.blobs import BlobStore
from limpet.store.driver import Store
from limpet.types.channel import Channel
from limpet.types.clock import SystemClock


@dataclass(frozen=True, slots=True)
class Doors:
    """Implements the port `Opening`: the channels that are configured."""

    settings: Callable[[], Settings]
    home: Home
    web: WebChannel
    store: Store

    def configured(self) -> Mapping[tuple[str, str], ChannelSettings]:
        settings = self.settings()
        found = accounts(settings.channels)
        if settings.gateway.port and find_spec("starlette") is not None:
            found[WEB, ACCOUNT] = WEB_SETTINGS
            found[programs.CHANNEL, programs.ACCOUNT] = API_SETTINGS
        if settings.webhooks.targets:
            found[webhook.NAME, webhook.ACCOUNT] = webhook.SETTINGS
        return found

    def open(self, kind: str, account: str) -> Channel:
        if kind == WEB:
            return self.web
        if kind == webhook.NAME:
            return self._posting()
        if kind == programs.CHANNEL:
            return ApiChannel()
        settings = self.configured()[kind, account]
        where = f"channels.{kind}.{account}"

        def secret(reference: str) -> str:
            return resolve(reference, key=where, root=self.home.root, environ=os.environ)

        folder = str(self.home.root / "channels" / kind / account)
        means = Means(SystemClock(), folder, secret, BlobStore(str(self.home.blobs), self.store).path)
        try:
            return _maker(kind)(account, settings, means)
        except ImportError as error:
            raise ConfigError(
                f"{where}: its library is not installed ({error.name}).",
                hint=f"Install it: pip install 'limpet[{kind}]'.",
            ) from None

    def _posting(self) -> Channel:
        """The channel that posts answers of jobs."""
        net = self.settings().net

        def secret(reference: str, key: str) -> str:
            return resolve(reference, key=key, root=self.home.root, environ=os.environ)

        web = Web(wiring.guard(net), proxy=net.proxy)
        return webhook.WebhookChannel(lambda: self.settings().webhooks.targets, web, secret=secret, clock=SystemClock())


class Maker(Protocol):
    """Makes the channel of one account; provided by each module of `channels`."""

    def __call__(self, account: str, settings: ChannelSettings, means: Means, /) -> Channel: ...


def _maker(kind: str) -> Maker:
    found = load(KINDS[kind])
    if not _is_maker(found):
        raise TypeError(f"{KINDS[kind]} makes no channel")
    return found


def _is_maker(value: object) -> TypeGuard[Maker]:
    return callable(value)
