"""`limpet onboard`: workspace and model in a minute. Every answer is also an option."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click
from msgspec import Struct

from limpet.cli.group import WORDS, Invocation
from limpet.cli.terminal import say, wrapped
from limpet.config.load import Loaded
from limpet.config.paths import Home, find_workspace, prepare_home, prepare_workspace
from limpet.config.schema import ProviderSettings
from limpet.config.secrets import is_reference
from limpet.config.table import Key
from limpet.config.write import set_values
from limpet.errors import InputError
from limpet.llm.profiles import services
from limpet.prompt.templates import seed_workspace

LATER = "later"


class Answers(Struct, frozen=True):
    """What was asked. Empty = leave it as it is."""

    name: str = ""
    timezone: str = ""
    workspace: str = ""
    provider: str = ""
    api_key: str = ""
    base_url: str = ""
    model: str = ""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--name", type=WORDS, default="", help="What the agent calls you.")
@click.option(
    "--timezone", type=WORDS, default="", help="Your time zone, such as Europe/Lisbon. Default: the system's."
)
@click.option(
    "--workspace", type=WORDS, default="", help="The folder the agent works in. Default: workspace in Limpet's home."
)
@click.option(
    "--provider",
    type=WORDS,
    default="",
    help="One that `limpet models list` names, or your own with --base-url; later: none yet.",
)
@click.option(
    "--api-key",
    type=WORDS,
    default="",
    help="The key, or better a reference to it: secret:NAME, env:NAME or file:PATH.",
)
@click.option("--base-url", type=WORDS, default="", help="Address of an OpenAI-compatible server, ending in /v1.")
@click.option("--model", type=WORDS, default="", help="The model's name at the provider. Default: Limpet chooses.")
@click.option("--yes", is_flag=True, help="Ask nothing: take options and defaults.")
@click.pass_obj
def onboard(invocation: Invocation, yes: bool, **options: str) -> None:
    """Set up workspace and model in a minute. Safe to run again: it changes what you answer and nothing else."""
    home = invocation.home()
    loaded = invocation.settings()
    answers = Answers(**options)
    if not yes and sys.stdin.isatty():
        answers = ask(answers, loaded)
    prepare_home(home)
    values = decide(answers, home, loaded)
    workspace = find_workspace(answers.workspace or loaded.settings.agent.workspace, home)
    written = seed_workspace(str(workspace), bootstrap=prepare_workspace(workspace))
    if values:
        set_values(home.config, values)
    say(f"Workspace: {workspace}" + (f" (wrote {', '.join(written)})" if written else ""))
    say(f"Settings: {home.config}" + ("" if values else " (nothing to write: all defaults)"))
    say("Next: limpet chat, or limpet doctor when something does not work.")


def ask(answers: Answers, loaded: Loaded) -> Answers:
    """The answers, with what the options left open asked on the terminal. Enter keeps what is shown."""
    say(wrapped("Enter keeps what is shown in brackets. Nothing is written before the last answer."))
    user, agent = loaded.settings.user, loaded.settings.agent
    name = answers.name or _prompt("Your name", user.name)
    timezone = answers.timezone or _ask_zone(user.timezone)
    workspace = answers.workspace or _prompt("Workspace (empty: in Limpet's home)", agent.workspace)
    provider = answers.provider or _prompt(
        f"Model provider ({', '.join(providers())}, {LATER})", likely_provider(loaded)
    )
    known = configured(loaded, provider)
    api_key = answers.api_key
    variable = key_variable(provider)
    if not api_key and variable and not os.environ.get(variable):
        keep = "Enter keeps the one there is" if known.api_key else "not shown"
        api_key = click.prompt(f"Key for {provider} ({keep})", default="", show_default=False, hide_input=True)
    base_url = answers.base_url
    if not base_url and provider != LATER and not (provider in services() and services()[provider].base_url):
        base_url = _prompt("Address of the server, ending in /v1", known.base_url)
    model = answers.model
    if not model and provider != LATER:
        named, _, usual = agent.model.partition("/")
        model = _prompt("Model (empty: Limpet chooses)", usual if named == provider else "")
    return Answers(name, timezone, workspace, provider, api_key, base_url, model)


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


def likely_provider(loaded: Loaded) -> str:
    """The provider in use, else one whose key is in the environment."""
    if loaded.settings.agent.model:
        return loaded.settings.agent.model.partition("/")[0]
    return next((name for name in providers() if os.environ.get(key_variable(name) or "")), LATER)


def decide(answers: Answers, home: Home, loaded: Loaded) -> dict[Key, object]:
    """What goes into the file. A key that was typed goes into the store of secrets. Raises `InputError`."""
    values: dict[Key, object] = {}
    for key, value in (
        (("user", "name"), answers.name),
        (("user", "timezone"), checked_zone(answers.timezone)),
        (("agent", "workspace"), answers.workspace and str(Path(answers.workspace).expanduser().absolute())),
    ):
        if value:
            values[key] = value
    provider = answers.provider
    if provider and provider != LATER:
        base_url = answers.base_url or configured(loaded, provider).base_url or local_address(provider)
        service = services().get(provider)
        if not base_url and not (service and service.base_url):
            reason = "has no address of its own" if service else "is no provider Limpet knows"
            raise InputError(f"{provider} {reason}.", hint="Give its address: --base-url URL")
        if base_url:
            values["providers", provider, "base_url"] = base_url
        if reference := key_reference(provider, answers.api_key, home):
            values["providers", provider, "api_key"] = reference
        if answers.model:
            values["agent", "model"] = f"{provider}/{answers.model.removeprefix(provider + '/')}"
    return values


def key_reference(provider: str, given: str, home: Home) -> str:
    """The reference to write for a key: `given` when it is one, else to the store, which now holds the key."""
    variable = key_variable(provider)
    if not given:
        return f"env:{variable}" if variable and os.environ.get(variable) else ""
    if is_reference(given):
        return given
    from limpet.config.vault import Vault  # only when one was typed

    name = "".join(character if character.isalnum() and character.isascii() else "-" for character in provider)
    Vault(home.root).put(name, given.strip())
    return f"secret:{name}"


def checked_zone(name: str) -> str:
    """`name` when there is such a time zone. Raises `InputError`."""
    from zoneinfo import ZoneInfo  # only when one was given

    try:
        return ZoneInfo(name).key if name else ""
    except (KeyError, ValueError, OSError):
        raise InputError(f"There is no time zone {name}.", hint="Write it like Europe/Lisbon.") from None
