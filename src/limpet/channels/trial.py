"""Whether a platform takes a token, found out by one request that changes nothing."""

from __future__ import annotations

from collections.abc import Callable

from limpet.channels.rest import Rest
from limpet.config.channels import ChannelSettings, DiscordSettings, SlackSettings, TelegramSettings
from limpet.types.ports import Clock

Secret = Callable[[str], str]
"""The value that a setting stands for."""


async def greet(settings: ChannelSettings, *, secret: Secret, clock: Clock) -> str:
    """What the platform says of the account, such as the name of the bot; empty for kinds that are not tried here.

    Raises `RefusedError` for a wrong token, other `ChannelError`s where the platform cannot be asked.
    """
    if isinstance(settings, TelegramSettings):
        return await _telegram(settings, secret(settings.token))
    if isinstance(settings, DiscordSettings):
        return await _discord(settings, secret(settings.token), clock)
    if isinstance(settings, SlackSettings):
        return await _slack(settings, secret(settings.bot_token), secret(settings.app_token))
    return ""


async def _telegram(settings: TelegramSettings, token: str) -> str:
    from limpet.channels.telegram.api import Api
    from limpet.channels.telegram.wire import User

    api = Api(token, base_url=settings.base_url, proxy=settings.proxy)
    try:
        return f"@{(await api.call('getMe', User, params={})).username}"
    finally:
        await api.close()


async def _discord(settings: DiscordSettings, token: str, clock: Clock) -> str:
    from limpet.channels.discord.api import Api
    from limpet.channels.discord.wire import Entry

    rest = Rest("Discord", proxy=settings.proxy)
    try:
        await Api(token, base_url=settings.base_url, rest=rest, clock=clock).call("GET", "/gateway/bot", Entry)
        return "your bot"
    finally:
        await rest.close()


async def _slack(settings: SlackSettings, bot: str, app: str) -> str:
    from limpet.channels.slack.api import Api
    from limpet.channels.slack.wire import Me, Opened

    rest = Rest("Slack", proxy=settings.proxy)
    try:
        api = Api(bot, app, base_url=settings.base_url, rest=rest)
        me = await api.call("auth.test", Me)
        await api.call("apps.connections.open", Opened, app=True)
        return f"the bot {me.user_id}"
    finally:
        await rest.close()
