"""The first channel of `limpet onboard`: its settings out of the answers, and how its owner is paired."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import get_origin

from msgspec import Struct, convert

from limpet.channels.kinds import KINDS
from limpet.cli.onboard_find import TOKENS, tokens_of
from limpet.config import check
from limpet.config.secrets import is_reference
from limpet.config.table import Key, Table, is_table, look_up, split_key
from limpet.errors import InputError

SECRETS: Mapping[str, tuple[str, ...]] = {
    **{kind: tuple(settings) for kind, settings in TOKENS.items()},
    **dict.fromkeys(("email", "irc", "matrix", "mqtt", "xmpp"), ("password",)),
}
"""The settings of each kind that hold its tokens: the first is `--token`, the second `--app-token`."""
DIGITS = ("telegram", "discord")
"""Kinds whose ids of people are numbers."""
TOKEN_HINTS: Mapping[str, str] = {
    "telegram": "@BotFather on Telegram gives a bot and its token (/newbot).",
    "discord": "discord.com/developers/applications, your application, Bot, Reset Token.",
    "slack": "api.slack.com/apps, your app: xoxb-… under OAuth & Permissions, xapp-… under Basic Information.",
}


class ChannelAnswers(Struct, frozen=True):
    """`settings` are `KEY=VALUE`; `token` and `app_token` may be references; `owner` is your id there."""

    kind: str
    account: str = "main"
    token: str = ""
    app_token: str = ""
    owner: str = ""
    settings: tuple[str, ...] = ()


def channel_values(
    answers: ChannelAnswers, table: Table, environ: Mapping[str, str]
) -> tuple[dict[Key, object], dict[str, str]]:
    """What to write for the channel, and which secrets to keep by their names. Raises `InputError`.

    `table` is what the settings hold already.
    """
    if answers.kind not in KINDS:
        raise InputError(f"There is no channel {answers.kind}.", hint=f"There are: {', '.join(KINDS)}.")
    base = ("channels", answers.kind, answers.account)
    values: dict[Key, object] = {(*base, *key): value for key, value in _given(answers.settings, base)}
    secrets: dict[str, str] = {}
    for name, given in zip(SECRETS.get(answers.kind, ()), (answers.token, answers.app_token), strict=False):
        if given and not is_reference(given):
            kept = "-".join(part for part in (answers.kind, answers.account, name) if part not in ("main", "token"))
            secrets[kept], given = given.strip(), f"secret:{kept}"
        given = given or tokens_of(answers.kind, environ).get(name, "")
        there = look_up(table, (*base, name))
        if given and (not there or answers.token or answers.app_token):
            values[*base, name] = given
        elif not there and answers.kind in TOKENS:
            raise InputError(f"{answers.kind} needs its {name}.", hint=TOKEN_HINTS[answers.kind])
    if answers.owner:
        values[*base, "owners"] = _owners(answers, look_up(table, (*base, "owners")))
    if not values and not is_table(look_up(table, base)):
        raise InputError(
            f"{answers.kind} needs settings.",
            hint=f"Give them as --set KEY=VALUE: see docs/channels/{answers.kind}.md.",
        )
    return values, secrets


def _given(settings: Iterable[str], base: Key) -> Iterable[tuple[Key, object]]:
    for one in settings:
        name, is_there, text = one.partition("=")
        key = split_key(name)
        kind = check.type_of((*base, *key))
        if not is_there or kind is None:
            raise InputError(f"{base[1]} has no setting {name!r}.", hint=f"See docs/channels/{base[1]}.md.")
        try:
            listed = [part.strip() for part in text.split(",") if part.strip()]
            yield key, listed if get_origin(kind) is tuple else check.from_text((*base, *key), text)
        except ValueError as error:
            raise InputError(f"{name}: {error}") from None


def _owners(answers: ChannelAnswers, there: object) -> list[str]:
    owner = answers.owner.strip()
    if answers.kind in DIGITS and not owner.isdecimal():
        raise InputError(
            f"{owner!r} is no id of {answers.kind}: that is a number, not a name.",
            hint="Leave it out: write to your bot, and approve the code that it answers with.",
        )
    known = convert(there, list[str]) if there else []
    return known if owner in known else [*known, owner]
