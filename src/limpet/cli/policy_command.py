"""`limpet policy`: what may run unasked, which rule says so, and what other rules would have said."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import click
import msgspec

from limpet.assistant.services import Services
from limpet.assistant.simulation import Judged, simulate
from limpet.assistant.taint import TaintPolicy
from limpet.cli.door import Entrance, Nobody, opener
from limpet.cli.group import WORDS, Invocation
from limpet.cli.sessions_find import find, reading
from limpet.cli.terminal import pairs, say, wrapped
from limpet.config.load import load_settings
from limpet.config.schema import PolicySettings
from limpet.errors import InputError
from limpet.session.log import Log
from limpet.store import sessions
from limpet.tools.deferred import unwrapped
from limpet.tools.described import DEFAULTS, described
from limpet.tools.profiles import PROFILES
from limpet.tools.rules import Explanation, RulePolicy
from limpet.types.content import ToolCall
from limpet.types.envelope import TRUST_ORDER, Person, Trust
from limpet.types.event import Event
from limpet.types.ports import EVERYWHERE, BoundCall, Scope, Tool, Verdict

IMPOSSIBLE = "not possible any more"


@click.group("policy", context_settings={"help_option_names": ["-h", "--help"]})
def policy() -> None:
    """What may run unasked, and which rule says so."""


@policy.command("list")
@click.pass_obj
def list_command(invocation: Invocation) -> None:
    """The rules in force: yours, then the default ones."""
    settings = invocation.settings().settings.policy
    say(f"profile {settings.profile}: {', '.join(PROFILES[settings.profile])}")
    for kind, table in (("agent", settings.agents), ("channel", settings.channels), ("sender", settings.senders)):
        for name, profile in table.items():
            say(f"profile of {kind} {name}: {profile}")
    if settings.exec.mode == "list":
        say(wrapped(f"commands: {', '.join(settings.exec.allow) or 'none'}; others: {settings.exec.otherwise}"))
    say(pairs([*described(settings.rules), *DEFAULTS]))


@policy.command("explain")
@click.argument("tool", type=WORDS)
@click.argument("arguments", type=WORDS, nargs=-1, metavar="[JSON | NAME=VALUE…]")
@click.option("--channel", type=WORDS, default="cli", help="Over which channel it was asked for.")
@click.option("--sender", type=WORDS, default="", help="By whom.")
@click.option("--agent", "agent_id", type=WORDS, default="main", metavar="ID", help="Of which agent.")
@click.option("--trust", type=click.Choice(TRUST_ORDER), default="owner", help="Lowest trust of what was read.")
@click.option("--tainted", is_flag=True, help="Strangers' words are in the conversation.")
@click.pass_obj
def explain(
    invocation: Invocation,
    *,
    tool: str,
    arguments: tuple[str, ...],
    channel: str,
    sender: str,
    agent_id: str,
    trust: Trust,
    tainted: bool,
) -> None:
    """What is decided of one call, by which rule, and which others have a say."""
    scope = Scope(
        agent=agent_id, people=(Person(channel, sender, trust == "owner"),), trust="external" if tainted else trust
    )
    verdict, matched = asyncio.run(_explain(invocation, tool, _given(arguments), scope=scope))
    say(f"{verdict.decision}: {verdict.reason}" if verdict.reason else verdict.decision)
    say(f"rule: {verdict.rule}")
    for one in matched:
        if one.rule != verdict.rule:
            say(wrapped(f"also: {one.rule}, {one.decision}" + (f": {one.reason}" if one.reason else "")))


async def _explain(
    invocation: Invocation, name: str, arguments: str, *, scope: Scope
) -> tuple[Verdict, tuple[Verdict, ...]]:
    async with _opened(invocation, agent=scope.agent) as services:
        call = unwrapped(ToolCall("", name, arguments))
        name, arguments = call.name, call.arguments
        tool = next((one for one in services.tools if one.spec.name == name), None)
        if tool is None:
            known = ", ".join(one.spec.name for one in services.tools)
            raise InputError(f"There is no tool {name}; there are: {known}.")
        bound = tool.bind(arguments, workspace=services.workspace)
        rules = services.policy
        assert isinstance(rules, RulePolicy)
        log = Log()
        log.tainted = scope.trust == "external"
        found = _Explained(rules, msgspec.structs.replace(scope, workspace=services.workspace))
        return TaintPolicy(found, log, turn="", workspace=services.workspace).decide(tool, bound), found.matched


class _Explained:
    """Implements the port `Policy`: that of `rules` in one scope, and remembers what had a say."""

    def __init__(self, rules: RulePolicy, scope: Scope) -> None:
        self._rules = rules
        self._scope = scope
        self.matched: tuple[Verdict, ...] = ()

    def decide(self, tool: Tool, call: BoundCall, scope: Scope = EVERYWHERE) -> Verdict:
        found: Explanation = self._rules.explain(tool, call, self._scope)
        self.matched = found.matched
        return found.verdict


def _given(arguments: Sequence[str]) -> str:
    """The arguments of a call as JSON text. Raises `InputError`."""
    if len(arguments) == 1 and arguments[0].lstrip().startswith("{"):
        return arguments[0]
    values: dict[str, object] = {}
    for one in arguments:
        name, mark, value = one.partition("=")
        if not mark:
            raise InputError(f"{one} is neither NAME=VALUE nor a JSON object.")
        values[name] = _value(value)
    return json.dumps(values)


def _value(text: str) -> object:
    """Numbers, truth values and lists are read as JSON, anything else is text."""
    try:
        found: object = json.loads(text)
    except ValueError:
        return text
    return text if found is None or isinstance(found, str) else found


@policy.command("simulate")
@click.option(
    "--session", "name", type=WORDS, default="main", metavar="SESSION", help="Which conversation. Default: main."
)
@click.option("--all", "everything", is_flag=True, help="All conversations.")
@click.option("--rules", "file", default="", metavar="FILE", help="The [policy] of this file instead of yours.")
@click.pass_obj
def simulate_command(invocation: Invocation, *, name: str, everything: bool, file: str) -> None:
    """What the rules would say of the calls of recorded turns, and what differs from what happened."""
    with reading(invocation) as connection:
        if connection is None:
            raise InputError("There is no conversation yet.")
        rows = sessions.recent(connection, limit=-1) if everything else [find(connection, name)]
    settings = _rules_of(file) if file else invocation.settings().settings.policy
    judged = asyncio.run(_simulate(invocation, [row.id for row in rows], settings))
    for one in judged:
        if one.now is None or one.then not in (one.now.decision, "open"):
            say(wrapped(_line(one)))
    counts = Counter(one.decision or IMPOSSIBLE for one in judged)
    said = ", ".join(f"{counts[word]} {word}" for word in ("allow", "ask", "deny", IMPOSSIBLE) if counts[word])
    say(f"{len(judged)} calls: {said or 'none'}")


def _line(one: Judged) -> str:
    if one.now is None:
        return f"{one.then}, cannot be made any more: {one.plan}"
    return f"{one.then}, now {one.now.decision} ({one.now.rule}): {one.plan}"


async def _simulate(invocation: Invocation, names: Sequence[str], settings: PolicySettings) -> list[Judged]:
    async with _opened(invocation) as services:
        rules = services.policy
        assert isinstance(rules, RulePolicy)
        policy = rules.under(settings)
        found = [services.store.read(lambda connection, name=name: sessions.find(connection, name)) for name in names]
        return [one for row in found if row for one in simulate(services, row, policy)]


def _rules_of(file: str) -> PolicySettings:
    """Raises `ConfigError`, `InputError`."""
    path = Path(file)
    if not path.is_file():
        raise InputError(f"There is no file {file}.")
    return load_settings(path, {}).settings.policy


@asynccontextmanager
async def _opened(invocation: Invocation, *, agent: str = "main") -> AsyncGenerator[Services]:
    entrance = Entrance(emit=_silent, approvals=Nobody(), agent=agent, announce=False)
    async with opener(invocation)(invocation, entrance) as services:
        yield services


def _silent(event: Event) -> None:
    """Nobody watches."""
