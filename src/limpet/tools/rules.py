"""Rules of the owner (`[policy]`): profiles, a list of commands, and tables that allow, ask or deny.

Deny wins over ask, ask over allow, so what a rule says for one channel or sender only narrows what rules say for all.
An `allow` lifts what the default rules ask for, but neither what always asks nor the taint rule, unless it names them.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from limpet.config.schema import ExecPolicySettings, PolicySettings, ProfileName, RuleSettings
from limpet.tools.conditions import Facts, Match, listed, matches
from limpet.tools.profiles import missing_in
from limpet.types.ports import EVERYWHERE, BoundCall, Decision, Policy, Scope, Tool, Verdict

ALWAYS = ("danger", "credentials")
"""The default rules that no `allow` sets aside unless it says `even = ["danger"]`."""
_ORDER: tuple[Decision, ...] = ("deny", "ask", "allow")


class Explanation(Struct, frozen=True):
    """What is decided, and all that had a say, the strongest first."""

    verdict: Verdict
    matched: tuple[Verdict, ...]


class RulePolicy:
    """Implements the port `Policy`: the owner's rules over those of `inner`."""

    def __init__(self, inner: Policy, settings: PolicySettings) -> None:
        self._inner = inner
        self._settings = settings

    def under(self, settings: PolicySettings) -> RulePolicy:
        """The same with other rules of the owner."""
        return RulePolicy(self._inner, settings)

    def decide(self, tool: Tool, call: BoundCall, scope: Scope = EVERYWHERE) -> Verdict:
        return self.explain(tool, call, scope).verdict

    def explain(self, tool: Tool, call: BoundCall, scope: Scope = EVERYWHERE) -> Explanation:
        base = self._inner.decide(tool, call, scope)
        facts = Facts(tool.spec.name, call, scope)
        said = [base, *self._profiles(facts), *_not_listed(self._settings.exec, facts)]
        allowing: list[RuleSettings] = []
        for number, rule in enumerate(self._settings.rules, 1):
            match = matches(rule, facts)
            if match != "no":
                said.append(_verdict(rule, number, match, facts=facts, place=base.place))
            if match == "yes" and rule.decision == "allow":
                allowing.append(rule)
        said.sort(key=lambda one: _ORDER.index(one.decision))
        return Explanation(_combine(base, said, allowing), tuple(said))

    def _profiles(self, facts: Facts) -> list[Verdict]:
        if missing := missing_in(self._applying(facts.scope), facts.tool):
            return [Verdict("deny", f"the profile {missing} has no {facts.tool}", rule=f"profile {missing}")]
        return []

    def _applying(self, scope: Scope) -> Iterator[ProfileName]:
        """The profiles for everybody, others than the owner, this agent, each channel and sender: each only narrows."""
        settings = self._settings
        yield settings.profile
        if not all(person.is_owner or person.profile for person in scope.people):
            yield settings.peers
        for person in scope.people:
            if person.profile:
                yield person.profile
        named = [(settings.agents, scope.agent)]
        for person in scope.people:
            named.append((settings.channels, person.channel))
            named += [(settings.senders, name) for name in (person.sender, f"{person.channel}:{person.sender}")]
        for table, name in named:
            if name in table:
                yield table[name]


def _not_listed(settings: ExecPolicySettings, facts: Facts) -> list[Verdict]:
    """What the list of commands says, where it is in force and the command is not covered by it."""
    if settings.mode != "list" or facts.tool != "exec":
        return []
    why = listed(facts.script, settings.allow)
    return [Verdict(settings.otherwise, why, rule="command list")] if why else []


def _verdict(rule: RuleSettings, number: int, match: Match, *, facts: Facts, place: str) -> Verdict:
    name = rule.name or f"policy.rules.{number}"
    if match == "maybe":
        return Verdict("ask", f"{name} may apply, but {facts.script.obstacle}", rule=name, place=place)
    return Verdict(rule.decision, rule.reason or f"the rule {name} says so", rule=name, place=place)


def _combine(base: Verdict, said: list[Verdict], allowing: list[RuleSettings]) -> Verdict:
    """`said` is sorted, the strongest first."""
    even = tuple(sorted({name for rule in allowing for name in rule.even}))
    strongest = next((one for one in said if one is not base and one.decision != "allow"), None)
    if base.decision == "deny" or (strongest is not None and strongest.decision == "deny"):
        refused = strongest if strongest is not None and strongest.decision == "deny" else base
        return _at(refused, base.place)
    lifted = bool(allowing) and (base.rule not in ALWAYS or "danger" in even)
    if base.decision == "ask" and not lifted:
        return base
    if strongest is not None:
        return _at(strongest, base.place)
    named = next((one for one in said if one is not base), base)
    return Verdict("allow", named.reason, rule=named.rule, place=base.place, even=even)


def _at(verdict: Verdict, place: str) -> Verdict:
    return Verdict(verdict.decision, verdict.reason, rule=verdict.rule, place=place)
