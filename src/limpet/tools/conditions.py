"""Conditions of policy rules: whether a rule is about a call."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Literal
from urllib.parse import urlsplit

from limpet.config.schema import RuleSettings
from limpet.tools import shell
from limpet.tools.shell import Script, Word
from limpet.types.envelope import TRUST_ORDER, Person
from limpet.types.ports import BoundCall, Scope

Match = Literal["no", "yes", "maybe"]
"""`maybe`: the rule is about a command that cannot be analysed."""
_PATHS = ("path", "paths", "workdir", "source", "target", "file", "from", "to")
_HARMLESS = ("/dev/null", "/dev/stdout", "/dev/stderr")


class Facts:
    """What rules are held against: a call, and where it is made."""

    def __init__(self, tool: str, call: BoundCall, scope: Scope) -> None:
        self.tool = tool
        self.values = call.values
        self.scope = scope
        self._writes = call.writes

    @cached_property
    def script(self) -> Script:
        """The command of `exec`; empty for any other tool."""
        return shell.read(str(self.values.get("command", ""))) if self.tool == "exec" else Script()

    @cached_property
    def _words(self) -> tuple[str, ...]:
        """The words of a command, with the files it reads and writes."""
        script = self.script
        words = [word.text for words in script.commands for word in words]
        return (*words, *script.reads, *script.writes, *script.assigned)

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """Absolute paths in the arguments."""
        given = [self.values[name] for name in _PATHS if name in self.values]
        named = [one for one in given if isinstance(one, str)]
        return (*self._writes, *(self._absolute(one) for one in (*named, *self._words)))

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """Hosts of the addresses in the arguments."""
        texts = [value for value in self.values.values() if isinstance(value, str)]
        return tuple(host for text in (*texts, *self._words) if (host := _host(text)))

    def absolute_pattern(self, pattern: str) -> str:
        return pattern if pattern.startswith("/") else f"{os.path.realpath(self.scope.workspace)}/{pattern}"

    def _absolute(self, path: str) -> str:
        try:
            return os.path.realpath(os.path.join(self.scope.workspace, os.path.expanduser(path)))
        except ValueError:  # a NUL byte
            return path


def matches(rule: RuleSettings, facts: Facts) -> Match:
    """Whether a rule is about a call: all its conditions have to hold."""
    scope = facts.scope
    plain = (
        fnmatchcase(facts.tool, rule.tool)
        and (not rule.agent or fnmatchcase(scope.agent, rule.agent))
        and _is_for(rule, scope.people)
        and _has_trust(rule, scope)
        and all(_argument(facts, name, pattern) for name, pattern in rule.argument.items())
        and (not rule.host or any(fnmatchcase(host, rule.host.lower()) for host in facts.hosts))
        and (not rule.path or _has_path(rule, facts))
    )
    if not plain:
        return "no"
    return _command(rule, facts) if rule.command else "yes"


def listed(script: Script, prefixes: Sequence[str]) -> str:
    """Why a script does more than run commands that begin with one of `prefixes`; empty when it does not."""
    if script.obstacle:
        return script.obstacle
    if script.assigned:
        return "it sets variables"
    if writes := [target for target in script.writes if target not in _HARMLESS]:
        return f"it writes to {writes[0]}"
    for words in script.commands:
        if not any(_begins(words, prefix, exact=True) for prefix in prefixes):
            return f"{' '.join(word.text for word in words)[:200]} is not on the list"
    return ""


def _command(rule: RuleSettings, facts: Facts) -> Match:
    if facts.tool != "exec":
        return "no"
    script = facts.script
    if rule.decision == "allow":
        return "no" if listed(script, rule.command) else "yes"
    if any(_begins(words, prefix, exact=False) for words in script.commands for prefix in rule.command):
        return "yes"
    return "maybe" if script.obstacle else "no"


def _begins(words: Sequence[Word], prefix: str, *, exact: bool) -> bool:
    """Whether a command begins with the words of `prefix`; not `exact`: in whatever folder the program lies."""
    wanted = prefix.split()
    first = words[: len(wanted)]
    texts = [word.text for word in first]
    if exact and not all(word.literal for word in first):
        return False
    if not exact and texts:
        texts[0] = shell.name_of(words)
    return texts == wanted


def _is_for(rule: RuleSettings, people: Sequence[Person]) -> bool:
    """An `allow` has to be for all who speak in the turn, anything else for one of them."""
    if not rule.channel and not rule.sender:
        return True
    found = [_is_about(rule, person) for person in people]
    return bool(found) and (all(found) if rule.decision == "allow" else any(found))


def _is_about(rule: RuleSettings, person: Person) -> bool:
    names = (person.sender, f"{person.channel}:{person.sender}")
    return (not rule.channel or fnmatchcase(person.channel, rule.channel)) and (
        not rule.sender or any(fnmatchcase(name, rule.sender) for name in names)
    )


def _has_trust(rule: RuleSettings, scope: Scope) -> bool:
    """An `allow` holds for this trust and more, anything else for this and less."""
    if not rule.trust:
        return True
    here, named = TRUST_ORDER.index(scope.trust), TRUST_ORDER.index(rule.trust)
    return here >= named if rule.decision == "allow" else here <= named


def _argument(facts: Facts, name: str, pattern: str) -> bool:
    if name not in facts.values:
        return False
    value = facts.values[name]
    return fnmatchcase(value if isinstance(value, str) else json.dumps(value, default=str), pattern)


def _has_path(rule: RuleSettings, facts: Facts) -> bool:
    """An `allow` has to be about all paths of a call, and is never about a command, which can reach others."""
    pattern = facts.absolute_pattern(rule.path)
    found = [fnmatchcase(path, pattern) for path in facts.paths]
    if rule.decision == "allow":
        return facts.tool != "exec" and bool(found) and all(found)
    return any(found)


def _host(text: str) -> str:
    if not text.lower().startswith(("http://", "https://")):
        return ""
    try:
        return (urlsplit(text).hostname or "").lower()
    except ValueError:
        return ""
