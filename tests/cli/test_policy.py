"""`limpet policy`: what is decided, by which rule, and what other rules would have said of recorded calls."""

from __future__ import annotations

import json
from pathlib import Path

from limpet.testing.fakes.script import Call, Reply
from tests.cli.program import ask, run

RULES = """
[policy.exec]
mode = "list"
allow = ["echo"]
[[policy.rules]]
name = "look only"
decision = "deny"
tool = "write_file"
sender = "mallory"
"""


def configured(home: Path, text: str = RULES) -> None:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(text)


def test_explain_names_the_rule_and_the_others(tmp_path: Path) -> None:
    configured(tmp_path)
    ended = run(tmp_path, "policy", "explain", "exec", "command=rm -rf src")
    assert ended.code == 0, ended.err
    assert ended.out.startswith("ask: it deletes a whole tree (src)\nrule: danger\n")
    assert "also: command list, ask: rm -rf src is not on the list" in ended.out
    denied = run(tmp_path, "policy", "explain", "write_file", '{"path": "a", "content": ""}', "--sender", "mallory")
    assert denied.out.splitlines()[1] == "rule: look only"


def test_explain_knows_the_taint_rule(tmp_path: Path) -> None:
    arguments = ("policy", "explain", "write_file", "path=SOUL.md", "content=x")
    assert run(tmp_path, *arguments).out.startswith("allow")
    assert "rule: taint" in run(tmp_path, *arguments, "--tainted").out


def test_explain_judges_the_call_inside_call_tool(tmp_path: Path) -> None:
    configured(tmp_path)
    inner = json.dumps({"name": "exec", "arguments": {"command": "rm -rf src"}})
    assert "rule: danger" in run(tmp_path, "policy", "explain", "call_tool", inner).out


def test_list_shows_own_and_default_rules(tmp_path: Path) -> None:
    configured(tmp_path)
    out = run(tmp_path, "policy", "list").out
    assert "look only" in out
    assert "danger" in out
    assert "commands: echo; others: ask" in out


def test_a_bad_rule_is_refused_with_key_and_reason(tmp_path: Path) -> None:
    configured(tmp_path, '[[policy.rules]]\ndecision = "allow"\ncomand = ["ls"]\n')
    ended = run(tmp_path, "policy", "list")
    assert ended.code == 2
    assert "policy.rules.1" in ended.err
    assert "comand" in ended.err


def test_simulate_says_what_would_differ(tmp_path: Path) -> None:
    write = Call("write_file", json.dumps({"path": "a.txt", "content": "x"}))
    assert ask(tmp_path, [Reply(calls=(write,)), Reply(text=("done",))], "agent", "-m", "go").code == 0
    assert run(tmp_path, "policy", "simulate").out == "1 calls: 1 allow\n"
    rules = tmp_path / "other.toml"
    rules.write_text('[[policy.rules]]\nname = "no writing"\ndecision = "deny"\ntool = "write_*"\n')
    out = run(tmp_path, "policy", "simulate", "--all", "--rules", str(rules)).out
    assert out.startswith("allow, now deny (no writing): write_file")
    assert out.endswith("1 calls: 1 deny\n")
