"""Rules of the owner: deny over ask over allow, narrower scopes only narrow, some things are always asked for."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.config.schema import PolicySettings, RuleSettings
from limpet.sandbox.run import Sandbox
from limpet.tools.builtin import builtin
from limpet.tools.policy import BuiltinPolicy
from limpet.tools.rules import RulePolicy
from limpet.types.envelope import Person
from limpet.types.ports import Scope, Tool, Verdict

HERE = Scope(workspace="/w")
NO_SANDBOX = Sandbox(enabled=False)
TOOLS: dict[str, Tool] = {tool.spec.name: tool for tool in builtin(sandbox=NO_SANDBOX)}


def decide(settings: dict[str, object], name: str, scope: Scope = HERE, /, **arguments: object) -> Verdict:
    policy = RulePolicy(BuiltinPolicy(NO_SANDBOX), msgspec.convert(settings, PolicySettings))
    return policy.decide(TOOLS[name], TOOLS[name].bind(json.dumps(arguments), workspace="/w"), scope)


def rules(*each: dict[str, object]) -> dict[str, object]:
    return {"rules": list(each)}


ALLOW_EXEC = {"decision": "allow", "tool": "exec"}


def test_deny_wins_over_ask_and_ask_over_allow() -> None:
    ask = {"decision": "ask", "tool": "ex*"}
    deny = {"decision": "deny", "tool": "*", "name": "never"}
    assert decide(rules(), "exec", command="ls").rule == "no sandbox"
    assert decide(rules(ALLOW_EXEC), "exec", command="ls").decision == "allow"
    assert decide(rules(ALLOW_EXEC, ask), "exec", command="ls").rule == "policy.rules.2"
    assert decide(rules(ALLOW_EXEC, ask, deny), "exec", command="ls").decision == "deny"
    assert decide(rules(deny), "read_file", path="a").rule == "never"


def test_what_always_asks_is_only_set_aside_by_name() -> None:
    assert decide(rules(ALLOW_EXEC), "exec", command="rm -rf src").decision == "ask"
    assert decide(rules({**ALLOW_EXEC, "even": ["danger"]}), "exec", command="rm -rf src").decision == "allow"
    reading = {"decision": "allow", "tool": "read_file"}
    assert decide(rules(reading), "read_file", path=".env").decision == "ask"
    assert decide(rules({**reading, "even": ["taint"]}), "read_file", path="a").even == ("taint",)


@pytest.mark.parametrize(
    ("condition", "hit", "miss"),
    [
        ({"path": "private/*"}, ("read_file", {"path": "private/a/b"}), ("read_file", {"path": "a"})),
        ({"path": "/etc/*"}, ("exec", {"command": "cat /etc/hosts"}), ("exec", {"command": "cat hosts"})),
        (
            {"host": "evil.*"},
            ("exec", {"command": "curl https://Evil.example/x"}),
            ("exec", {"command": "ls"}),
        ),
        ({"argument": {"pattern": "*key*"}}, ("grep", {"pattern": "my key"}), ("grep", {"pattern": "x"})),
        (
            {"command": ["git push"]},
            ("exec", {"command": "ls; /bin/git push"}),
            ("exec", {"command": "git pull"}),
        ),
        ({"command": ["curl"]}, ("exec", {"command": "env timeout 3 curl x"}), ("exec", {"command": "echo curl"})),
    ],
)
def test_conditions(
    condition: dict[str, object], hit: tuple[str, dict[str, str]], miss: tuple[str, dict[str, str]]
) -> None:
    settings = rules({"decision": "deny", **condition})
    assert decide(settings, hit[0], **hit[1]).decision == "deny"
    assert decide(settings, miss[0], **miss[1]).decision != "deny"


def test_a_rule_about_a_command_that_cannot_be_analysed_asks() -> None:
    verdict = decide(rules(ALLOW_EXEC, {"decision": "deny", "command": ["curl"]}), "exec", command="$X y")
    assert verdict.decision == "ask"
    assert "may apply" in verdict.reason


def test_an_allowed_command_is_all_that_a_script_does() -> None:
    settings = rules({"decision": "allow", "command": ["git status", "echo"]})
    for command, decision in {
        "git status -s": "allow",
        "echo a; git status": "allow",
        "git push": "ask",
        "echo a > x": "ask",
        "A=1 echo a": "ask",
        "./echo a": "ask",
    }.items():
        assert decide(settings, "exec", command=command).decision == decision, command


def test_channels_senders_agents_and_trust() -> None:
    group = Scope(people=(Person("chat", "ann"), Person("chat", "mallory")))
    deny = {"decision": "deny", "tool": "read_file", "sender": "chat:mallory"}
    assert decide(rules(deny), "read_file", group, path="a").decision == "deny"
    allow = {**ALLOW_EXEC, "sender": "ann"}
    assert decide(rules(allow), "exec", group, command="ls").decision == "ask"
    assert decide(rules(allow), "exec", Scope(people=(Person("chat", "ann"),)), command="ls").decision == "allow"
    assert decide(rules({**ALLOW_EXEC, "trust": "owner"}), "exec", Scope(trust="peer"), command="ls").decision == "ask"
    careful = {"decision": "deny", "tool": "grep", "trust": "peer", "agent": "m*"}
    assert decide(rules(careful), "grep", Scope(trust="external"), pattern="x").decision == "deny"
    assert decide(rules(careful), "grep", Scope(trust="owner"), pattern="x").decision == "allow"


def test_profiles_only_narrow() -> None:
    here = Scope(people=(Person("chat", "ann"),))
    settings: dict[str, object] = {"profile": "coding", "channels": {"chat": "full"}, "senders": {"ann": "minimal"}}
    assert decide(settings, "read_file", path="a").decision == "allow"
    assert decide(settings, "read_file", here, path="a").rule == "profile minimal"
    assert decide({"profile": "minimal", "agents": {"main": "full"}}, "read_file", path="a").decision == "deny"


def test_rules_with_unknown_conditions_are_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="comand"):
        msgspec.convert({"decision": "allow", "comand": ["ls"]}, RuleSettings)


one_rule = st.fixed_dictionaries(
    {"decision": st.sampled_from(["allow", "ask", "deny"])},
    optional={
        "tool": st.sampled_from(["*", "exec", "read_*"]),
        "sender": st.sampled_from(["ann", "bob"]),
        "channel": st.sampled_from(["chat", "cli"]),
        "command": st.sampled_from([["ls"], ["git"]]),
    },
)
STRENGTH = ("allow", "ask", "deny")


@given(st.lists(one_rule, max_size=4), one_rule.filter(lambda rule: rule["decision"] != "allow"))
def test_a_further_rule_that_does_not_allow_only_narrows(
    before: list[dict[str, object]], more: dict[str, object]
) -> None:
    scope = Scope(people=(Person("chat", "ann"),))
    for name, arguments in (("exec", {"command": "ls; git x"}), ("read_file", {"path": "a"})):
        first = decide(rules(*before), name, scope, **arguments)
        second = decide(rules(*before, more), name, scope, **arguments)
        assert STRENGTH.index(second.decision) >= STRENGTH.index(first.decision)
