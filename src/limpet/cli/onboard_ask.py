"""The answers of `limpet onboard`: asked on the terminal, and what they mean for settings and secrets."""

from __future__ import annotations

import os
from pathlib import Path

import click
from msgspec import Struct, field, structs

from limpet.cli.onboard_channel import SECRETS, TOKEN_HINTS, ChannelAnswers, channel_values
from limpet.cli.onboard_find import Found, tokens_of
from limpet.cli.terminal import say, wrapped
from limpet.config.load import Loaded
from limpet.config.schema import ProviderSettings
from limpet.config.secrets import is_reference
from limpet.config.table import Key
from limpet.errors import InputError
from limpet.llm.profiles import services

LATER = "later"
AS_IT_IS = "as it is"
RESETS: dict[str, dict[str, int]] = {
    "daily": {"daily": 4, "idle": 0},
    "idle": {"daily": -1, "idle": 1_440},
    "off": {"daily": -1, "idle": 0},
}
"""What each answer stands for: the hour, and the minutes."""


class Answers(Struct, frozen=True):
    """What was asked. Empty = leave it as it is."""

    name: str = ""
    timezone: str = ""
    workspace: str = ""
    provider: str = ""
    api_key: str = ""
    base_url: str = ""
    model: str = ""
    resets: str = ""
    channel: ChannelAnswers | None = None


class Plan(Struct, frozen=True):
    """What is to be written: settings, and secrets by their names in the store."""

    values: dict[Key, object]
    secrets: dict[str, str] = field(default_factory=dict[str, str])


def ask(answers: Answers, loaded: Loaded, found: tuple[Found, ...] = ()) -> Answers:
    """The answers, with what the options left open asked on the terminal. Enter keeps what is shown."""
    say(wrapped("Enter keeps what is shown in brackets. Nothing is written before the last answer."))
    user, agent = loaded.settings.user, loaded.settings.agent
    answers = structs.replace(
        answers,
        name=answers.name or _prompt("Your name", user.name),
        timezone=answers.timezone or _ask_zone(user.timezone),
        workspace=answers.workspace or _prompt("Workspace (empty: in Limpet's home)", agent.workspace),
    )
    answers = _ask_model(answers, loaded, found)
    resets = answers.resets or str(
        click.prompt(
            "Begin conversations anew (daily at 4, idle: after a day of silence, off)",
            default=_resets_of(loaded),
            type=click.Choice((*RESETS, AS_IT_IS)),
        )
    )
    answers = structs.replace(answers, resets="" if resets == AS_IT_IS else resets)
    return structs.replace(answers, channel=answers.channel or _ask_channel(found))


def _ask_model(answers: Answers, loaded: Loaded, found: tuple[Found, ...]) -> Answers:
    provider = answers.provider or _prompt(
        f"Model provider ({', '.join(providers())}, {LATER})", likely_provider(loaded, found)
    )
    known = configured(loaded, provider)
    api_key = answers.api_key
    variable = key_variable(provider)
    at_hand = any(one.name == provider and one.kind == "model" for one in found) or os.environ.get(variable or "-")
    if not api_key and variable and not at_hand:
        api_key = ask_key(provider, keeps=bool(known.api_key))
    base_url = answers.base_url
    if not base_url and provider != LATER and not (provider in services() and services()[provider].base_url):
        base_url = _prompt("Address of the server, ending in /v1", known.base_url)
    model = answers.model
    if not model and provider != LATER:
        named, _, usual = loaded.settings.agent.model.partition("/")
        model = _prompt("Model (empty: Limpet chooses)", usual if named == provider else "")
    return structs.replace(answers, provider=provider, api_key=api_key, base_url=base_url, model=model)


def ask_key(provider: str, *, keeps: bool = False) -> str:
    """A key, typed without being shown."""
    keep = "Enter keeps the one there is" if keeps else "not shown"
    return str(click.prompt(f"Key for {provider} ({keep})", default="", show_default=False, hide_input=True)).strip()


def _ask_channel(found: tuple[Found, ...]) -> ChannelAnswers | None:
    likely = next((one.name for one in found if one.kind == "channel" and one.state != "refused"), LATER)
    kind = str(
        click.prompt("First chat app", default=likely, type=click.Choice((*TOKEN_HINTS, LATER)), show_choices=True)
    )
    if kind == LATER:
        return None
    answers = ChannelAnswers(kind)
    if not tokens_of(kind, os.environ):
        answers = ask_tokens(answers)
    return structs.replace(answers, owner=_prompt("Your id there (empty: it gives you a code)", ""))


def ask_tokens(answers: ChannelAnswers) -> ChannelAnswers:
    """The same with tokens typed anew, without being shown."""
    say(wrapped(TOKEN_HINTS.get(answers.kind, "")))
    typed = [
        str(click.prompt(f"{name} (not shown)", default="", show_default=False, hide_input=True)).strip()
        for name in SECRETS[answers.kind]
    ]
    return structs.replace(answers, token=typed[0], app_token=typed[1] if len(typed) > 1 else "")


def _resets_of(loaded: Loaded) -> str:
    now = loaded.settings.sessions.reset
    return next(
        (name for name, one in RESETS.items() if (now.daily, now.idle) == (one["daily"], one["idle"])), AS_IT_IS
    )


def providers() -> list[str]:
    """The services Limpet knows by name, but for the one the owner names and the one inside."""
    return [name for name in services() if name not in ("custom", "embedded")]


def key_variable(provider: str) -> str:
    """The usual variable of a provider's key; empty for those that need none."""
    service = services().get(provider)
    return service.key_env if service and not service.keyless else ""


def local_address(provider: str) -> str:
    """Where a server of one's own usually listens; empty for services elsewhere."""
    service = services().get(provider)
    return service.base_url if service and service.ports else ""


def configured(loaded: Loaded, provider: str) -> ProviderSettings:
    """What the settings say of `provider` already."""
    return loaded.settings.providers.get(provider, ProviderSettings())


def _ask_zone(default: str) -> str:
    """A time zone that exists, asked for until it is one."""
    while True:
        try:
            return checked_zone(_prompt("Time zone (empty: the system's)", default))
        except InputError as error:
            say(error.present(), error=True)


def _prompt(text: str, default: str) -> str:
    return str(click.prompt(text, default=default, show_default=bool(default))).strip()


def likely_provider(loaded: Loaded, found: tuple[Found, ...] = ()) -> str:
    """The provider in use, else one that was found to work, else one whose key is in the environment."""
    if loaded.settings.agent.model:
        return loaded.settings.agent.model.partition("/")[0]
    if works := next((one.name for one in found if one.kind == "model" and one.state == "works"), ""):
        return works
    return next((name for name in providers() if os.environ.get(key_variable(name) or "")), LATER)


def decide(answers: Answers, loaded: Loaded, found: tuple[Found, ...] = ()) -> Plan:
    """What is to be written; nothing is yet. A key that was typed goes into the store of secrets. Raises
    `InputError`.
    """
    values: dict[Key, object] = {}
    secrets: dict[str, str] = {}
    for key, value in (
        (("user", "name"), answers.name),
        (("user", "timezone"), checked_zone(answers.timezone)),
        (("agent", "workspace"), answers.workspace and str(Path(answers.workspace).expanduser().absolute())),
    ):
        if value:
            values[key] = value
    provider = answers.provider
    if provider and provider != LATER:
        values |= _provider_values(answers, loaded)
        reference, typed = key_reference(provider, answers.api_key, loaded=loaded, found=found)
        if reference:
            values["providers", provider, "api_key"] = reference
        secrets |= typed
    if answers.resets:
        values |= {("sessions", "reset", name): value for name, value in RESETS[answers.resets].items()}
    if answers.channel is not None:
        more, kept = channel_values(answers.channel, loaded.table, os.environ)
        values |= more
        secrets |= kept
    return Plan(values, secrets)


def _provider_values(answers: Answers, loaded: Loaded) -> dict[Key, object]:
    provider = answers.provider
    base_url = answers.base_url or configured(loaded, provider).base_url or local_address(provider)
    service = services().get(provider)
    if not base_url and not (service and service.base_url):
        reason = "has no address of its own" if service else "is no provider Limpet knows"
        raise InputError(f"{provider} {reason}.", hint="Give its address: --base-url URL")
    values: dict[Key, object] = {}
    if base_url:
        values["providers", provider, "base_url"] = base_url
    if answers.model:
        values["agent", "model"] = f"{provider}/{answers.model.removeprefix(provider + '/')}"
    return values


def key_reference(
    provider: str, given: str, *, loaded: Loaded, found: tuple[Found, ...] = ()
) -> tuple[str, dict[str, str]]:
    """The reference to write for a key, empty to leave it as it is; and the secret to keep, where one was typed."""
    if given and not is_reference(given):
        name = "".join(character if character.isalnum() and character.isascii() else "-" for character in provider)
        return f"secret:{name}", {name: given.strip()}
    if given or configured(loaded, provider).api_key:
        return given, {}
    variable = key_variable(provider)
    if variable and os.environ.get(variable):
        return f"env:{variable}", {}
    stored = (one.where for one in found if one.name == provider and one.where.startswith("secret:"))
    return next(stored, ""), {}


def checked_zone(name: str) -> str:
    """`name` when there is such a time zone. Raises `InputError`."""
    from zoneinfo import ZoneInfo  # only when one was given

    try:
        return ZoneInfo(name).key if name else ""
    except (KeyError, ValueError, OSError):
        raise InputError(f"There is no time zone {name}.", hint="Write it like Europe/Lisbon.") from None
