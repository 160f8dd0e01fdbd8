"""`limpet secrets`, as a person uses it: values come on standard input and are never shown."""

from __future__ import annotations

from pathlib import Path

from limpet.testing.fakes.script import Reply
from tests.cli.program import ask, run

KEY = "sk-test-0123456789"


def keep(home: Path, name: str, value: str = KEY) -> None:
    assert run(home, "secrets", "set", name, stdin=value.encode() + b"\n").code == 0


def test_a_secret_is_set_listed_and_removed_and_never_shown(tmp_path: Path) -> None:
    keep(tmp_path, "openai")
    run(tmp_path, "config", "set", "providers.openai.api_key", "secret:openai")
    listed = run(tmp_path, "secrets", "list")
    assert "used by providers.openai.api_key" in listed.out
    removed = run(tmp_path, "secrets", "remove", "openai")
    assert "still names it" in removed.err
    assert "missing: openai" in run(tmp_path, "secrets", "list").err
    assert KEY not in listed.out + listed.err + removed.out
    assert all(KEY.encode() not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_the_value_is_no_argument(tmp_path: Path) -> None:
    assert run(tmp_path, "secrets", "set", "openai", KEY).code == 2


def test_references_are_tried(tmp_path: Path) -> None:
    keep(tmp_path, "openai")
    run(tmp_path, "config", "set", "providers.openai.api_key", "secret:opnai")
    wrong = run(tmp_path, "secrets", "test")
    assert (wrong.code, "Did you mean openai?" in wrong.out) == (1, True)
    run(tmp_path, "config", "set", "providers.openai.api_key", "secret:openai")
    assert (
        run(tmp_path, "secrets", "test").out == "ok providers.openai.api_key (secret:openai)\n1 looked at, 0 failed\n"
    )
    assert run(tmp_path, "secrets", "test", "nothing").code == 2


def test_rotation_changes_the_key_or_one_value(tmp_path: Path) -> None:
    keep(tmp_path, "openai")
    assert "1 secrets are encrypted" in run(tmp_path, "secrets", "rotate").out
    assert run(tmp_path, "secrets", "rotate", "openai", stdin=b"another-value").code == 0
    assert run(tmp_path, "secrets", "rotate", "opnai", stdin=b"x").code == 2
    assert run(tmp_path, "secrets", "test", "openai").code == 0


def test_the_provider_is_asked_whether_it_takes_the_key(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[providers.openai]\napi_key = "secret:openai"\n')
    keep(tmp_path, "openai", "fake-key-of-nobody")
    there = {"OPENAI_API_KEY": ""}
    refused = ask(tmp_path, lambda _: Reply(text=("OK",)), "secrets", "test", "--ask", **there)
    assert (refused.code, "FAILED openai" in refused.out) == (1, True)
