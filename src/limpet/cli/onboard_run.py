"""How `limpet onboard` goes: find, try, ask, decide, try, and only then write; the first pairing; what comes next."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping

import click
import msgspec
from msgspec import Struct, structs

from limpet.channels.kinds import KINDS
from limpet.cli.database import change
from limpet.cli.group import Invocation
from limpet.cli.moments import now_ms
from limpet.cli.onboard_ask import LATER, Answers, Plan, ask, ask_key, ask_tokens, decide
from limpet.cli.onboard_find import Found, find_channels, find_keys, find_servers, tokens_of, try_channel, try_model
from limpet.cli.terminal import hand_over, say, wrapped
from limpet.config import check
from limpet.config.channels import accounts
from limpet.config.load import Loaded
from limpet.config.paths import Home, find_workspace, prepare_home, prepare_workspace, workspace_fault
from limpet.config.schema import Settings
from limpet.config.secrets import resolve
from limpet.config.table import Key, dotted, put
from limpet.config.vault import Vault
from limpet.config.write import set_values
from limpet.errors import InputError, UserError, WorkspaceError
from limpet.gateway.status import living
from limpet.llm.configured import model_settings
from limpet.llm.profiles import services
from limpet.prompt.templates import seed_workspace
from limpet.store import peers

TRIES = 3
"""Keys or tokens that may be typed before it is given up."""
_REFERENCE = "a reference; the secret itself is not in this file"
COMMENTS: Mapping[str, str] = {
    "user.name": "what the agent calls you",
    "user.timezone": "for its clock, and for jobs",
    "agent.workspace": "the folder it works in",
    "agent.model": "provider/model; `limpet models set` changes it",
    "sessions.reset.daily": "the hour at which conversations begin anew; -1: never",
    "sessions.reset.idle": "minutes of silence after which they do; 0: never",
}
_BY_NAME: Mapping[str, str] = {
    **dict.fromkeys(("api_key", "token", "bot_token", "app_token", "password"), _REFERENCE),
    "base_url": "where it listens",
    "owners": "your ids there: you may do everything",
}


class Manner(Struct, frozen=True):
    """`asks`: somebody is at the terminal. `tries`: with trial requests."""

    asks: bool
    tries: bool
    as_json: bool


class Result(Struct, frozen=True):
    """What `--json` prints. `wrote` are files of the workspace, `settings` the keys that were written."""

    home: str
    config: str
    workspace: str
    wrote: tuple[str, ...]
    settings: tuple[str, ...]
    secrets: tuple[str, ...]
    found: tuple[Found, ...]
    next: tuple[str, ...]


def carry_out(invocation: Invocation, answers: Answers, manner: Manner) -> int:
    """Do it; gives the exit code. Raises `UserError`, then nothing was written."""
    home, loaded = invocation.home(), invocation.settings()
    found = asyncio.run(_found(home, loaded, answers=answers, manner=manner))
    if manner.asks:
        _tell(found)
        answers = ask(answers, loaded, found)
    plan, tried = _agreed(answers, home, loaded, found=found, manner=manner)
    others = tuple(one for one in found if (one.kind, one.name) not in {(new.kind, new.name) for new in tried})
    result = _write(home, loaded, plan, found=(*tried, *others))
    result = structs.replace(result, next=tuple(_next(home, answers, tried)))
    if manner.as_json:
        hand_over(msgspec.json.encode(result).decode() + "\n")
        return 0
    _report(result, plan)
    if manner.asks:
        _pair(home, answers)
        if answers.provider != LATER:
            _offer_conversation()
    return 0


async def _found(home: Home, loaded: Loaded, *, answers: Answers, manner: Manner) -> tuple[Found, ...]:
    """What is on this machine, tried. What the answers name is tried with them."""
    if not manner.tries and not manner.asks:
        return (*find_keys(Vault(home.root), os.environ), *find_channels(os.environ))
    servers = await find_servers()
    found = [*find_keys(Vault(home.root), os.environ), *servers, *find_channels(os.environ)]
    if not manner.tries:
        return tuple(found)
    named = {("model", answers.provider), ("channel", answers.channel.kind if answers.channel else "")}
    return tuple(await asyncio.gather(*(_tried(one, home, loaded, named=named) for one in found)))


async def _tried(found: Found, home: Home, loaded: Loaded, *, named: set[tuple[str, str]]) -> Found:
    """What was found by itself, tried as it would be used; what the answers name is tried with them."""
    if (found.kind, found.name) in named:
        return found
    if found.kind == "channel":
        account = ("channels", found.name, "found")
        plan = Plan({(*account, name): value for name, value in tokens_of(found.name, os.environ).items()})
        settings = accounts(_with(loaded, plan).channels)[found.name, "found"]
        return await try_channel(found, settings, secret=_resolver(home, found.name))
    key = ("providers", found.name, "api_key")
    values: dict[Key, object] = {} if "://" in found.where else {key: found.where}
    if "://" in found.where:
        values["providers", found.name, "base_url"] = found.where
    return await _try_provider(found, _with(loaded, Plan(values)), home)


async def _try_provider(found: Found, settings: Settings, home: Home) -> Found:
    models = model_settings(settings, home.root, os.environ, on_missing=lambda _: None)
    service = services().get(found.name)
    usual = settings.agent.model if settings.agent.model.partition("/")[0] == found.name else ""
    default = service.default if service else ""
    if not usual and not default:
        from limpet.llm.local import models_at  # a server says what it has

        url = settings.providers[found.name].base_url if found.name in settings.providers else ""
        try:
            names = await models_at(url or (service.base_url if service else ""))
        except OSError as error:
            return structs.replace(found, state="unreachable", text=str(error))
        if not names:
            return structs.replace(found, state="unreachable", text="it lists no models")
        default = names[0]
    return await try_model(found, models, named=usual or f"{found.name}/{default}")


def _agreed(
    answers: Answers, home: Home, loaded: Loaded, *, found: tuple[Found, ...], manner: Manner
) -> tuple[Plan, tuple[Found, ...]]:
    """The plan, after what was answered was tried. Raises `UserError` for what is refused."""
    left = TRIES
    while True:
        plan = decide(answers, loaded, found)
        _check(plan, home, loaded)
        tried = asyncio.run(_try_answers(answers, _with(loaded, plan), home)) if manner.tries else ()
        refused = next((one for one in tried if one.state == "refused"), None)
        if refused is None:
            return plan, tried
        left -= 1
        if not manner.asks or not left:
            raise UserError(
                f"{refused.name}: {refused.text.rstrip('.')}. Nothing was written.",
                hint="Correct the key or token; --no-test writes it unseen.",
            )
        say(wrapped(f"{refused.name}: {refused.text}"), error=True)
        if refused.kind == "model":
            answers = structs.replace(answers, api_key=ask_key(refused.name))
        elif answers.channel is not None:
            answers = structs.replace(answers, channel=ask_tokens(answers.channel))


async def _try_answers(answers: Answers, settings: Settings, home: Home) -> tuple[Found, ...]:
    trials: list[Coroutine[object, object, Found]] = []
    if answers.provider and answers.provider != LATER:
        where = configured_key(settings, answers.provider)
        trials.append(_try_provider(Found("model", answers.provider, where), settings, home))
    if answers.channel is not None:
        name = (answers.channel.kind, answers.channel.account)
        found = Found("channel", answers.channel.kind, "your answer")
        trials.append(try_channel(found, accounts(settings.channels)[name], secret=_resolver(home, ".".join(name))))
    return tuple(await asyncio.gather(*trials))


def configured_key(settings: Settings, provider: str) -> str:
    """Where the key of a provider comes from, never the key."""
    key = settings.providers[provider].api_key if provider in settings.providers else ""
    return key if key.startswith(("env:", "file:", "secret:")) else "your answer"


def _resolver(home: Home, where: str) -> Callable[[str], str]:
    return lambda reference: resolve(reference, key=where, root=home.root, environ=os.environ)


def _with(loaded: Loaded, plan: Plan) -> Settings:
    """The settings as they would be, with secrets that are not kept yet in their place."""
    table = loaded.table
    for key, value in plan.values.items():
        secret = plan.secrets.get(value.removeprefix("secret:")) if isinstance(value, str) else None
        table = put(table, key, secret if secret is not None else value)
    return msgspec.convert(table, Settings)


def _check(plan: Plan, home: Home, loaded: Loaded) -> None:
    """Whether all of it can be written. Raises `InputError`, `WorkspaceError`."""
    for key, value in plan.values.items():
        for fault in check.faults(put({}, key, value)):
            raise InputError(f"{dotted(fault.key)}: {fault.message}")
    workspace = find_workspace(_with(loaded, plan).agent.workspace or loaded.settings.agent.workspace, home)
    if fault := workspace_fault(workspace):
        raise WorkspaceError(fault, hint="Name another one: --workspace PATH")


def _write(home: Home, loaded: Loaded, plan: Plan, *, found: tuple[Found, ...]) -> Result:
    """Secrets first, then the settings in one step: who is killed between leaves a secret too many and no more."""
    prepare_home(home)
    for name, value in plan.secrets.items():
        Vault(home.root).put(name, value)
    if plan.values:
        comments = {key: COMMENTS.get(dotted(key)) or _BY_NAME.get(key[-1], "") for key in plan.values}
        set_values(home.config, plan.values, comments=comments)
    setting = plan.values.get(("agent", "workspace"), loaded.settings.agent.workspace)
    workspace = find_workspace(str(setting), home)
    written = seed_workspace(str(workspace), bootstrap=prepare_workspace(workspace))
    return Result(
        home=str(home.root),
        config=str(home.config),
        workspace=str(workspace),
        wrote=tuple(written),
        settings=tuple(map(dotted, plan.values)),
        secrets=tuple(plan.secrets),
        found=found,
        next=(),
    )


def _tell(found: tuple[Found, ...]) -> None:
    for one in found:
        say(wrapped(f"found: {one.name} ({one.where}): {one.text or one.state}"))


def _report(result: Result, plan: Plan) -> None:
    _tell(result.found)
    say(f"Workspace: {result.workspace}" + (f" (wrote {', '.join(result.wrote)})" if result.wrote else ""))
    say(f"Settings: {result.config}" + ("" if plan.values else " (nothing to write: all defaults)"))
    for line in result.next:
        say(wrapped(f"Next: {line}"))


def _next(home: Home, answers: Answers, tried: tuple[Found, ...]) -> Iterator[str]:
    """What is left to do."""
    runs = living(str(home.run)) is not None
    if answers.channel is not None:
        bot = next((one.text for one in tried if one.kind == "channel" and one.state == "works"), answers.channel.kind)
        if not runs:
            yield "limpet service install, or limpet gateway in a terminal: it connects the channel"
        if not answers.channel.owner and answers.channel.kind in KINDS and answers.channel.kind != "notify":
            yield f"write to {bot}: it answers with a code; limpet pair approve CODE makes you the owner"
    yield "limpet chat, or limpet doctor when something does not work"


def _pair(home: Home, answers: Answers) -> None:
    """Approve the code that the bot has answered with, where a gateway runs to answer."""
    if answers.channel is None or answers.channel.owner or living(str(home.run)) is None:
        return
    code = str(
        click.prompt("Write to your bot now. The code it answers with (empty: later)", default="", show_default=False)
    )
    if not code.strip():
        return
    made = change(home, lambda connection: peers.approve(connection, code, role="owner", by="cli", now=now_ms()))
    say(
        f"{made.name or made.id} is the owner."
        if made
        else "There is no such open code; `limpet pair list` shows them."
    )


def _offer_conversation() -> None:
    """The first conversation, in which the agent and its owner get to know each other (BOOTSTRAP.md)."""
    if click.confirm("Begin the first conversation now?", default=True):
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, "-m", "limpet", "chat"])
