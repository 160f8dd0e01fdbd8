"""`limpet replay` and `limpet eval`, as a person runs them."""

from __future__ import annotations

import json
from pathlib import Path

from limpet.testing.fakes.script import Call, Reply
from tests.cli.program import ask, run

SCRIPT = [Reply(text=("Looking.",), calls=(Call("list_dir", '{"path":"."}'),)), Reply(text=("Nothing there.",))]


def test_a_turn_is_replayed_saved_and_kept_as_a_test(tmp_path: Path) -> None:
    ask(tmp_path, SCRIPT, "agent", "-m", "what is there?")
    again = run(tmp_path, "replay")
    assert (again.code, again.out) == (0, "The same as recorded.\n"), again.err

    suite = tmp_path / "suite"
    suite.mkdir()
    assert run(tmp_path, "replay", "last", "--save", str(suite / "one.json")).code == 0
    all_same = run(tmp_path / "elsewhere", "eval", str(suite))
    assert all_same.code == 0, all_same.err
    assert all_same.out.endswith("1 of 1 came out as recorded.\n")

    changed = (suite / "one.json").read_text().replace("what is there?", "what was there?")
    (suite / "two.json").write_text(changed)
    assert run(tmp_path, "eval", str(suite)).code == 0, "it is the same record throughout"


def test_another_model_is_compared_by_what_it_calls(tmp_path: Path) -> None:
    ask(tmp_path, SCRIPT, "agent", "-m", "what is there?")
    other = [Reply(text=("I see nothing.",))]
    found = ask(tmp_path, other, "replay", "last", "--model", "openai/gpt-5-mini", "--json")
    assert found.code == 1, found.err
    line = json.loads(found.out)
    assert line["same"] is False
    assert '-call   list_dir {"path":"."}' in line["difference"]


def test_what_cannot_be_replayed_is_said(tmp_path: Path) -> None:
    nothing = run(tmp_path, "replay")
    assert nothing.code == 2
    assert "There is no turn" in nothing.err
    assert run(tmp_path, "replay", "t-nowhere").code == 2
    assert run(tmp_path, "replay", "nowhere.json").code == 2
    (tmp_path / "bad.json").write_text("{")
    assert "is no recorded turn" in run(tmp_path, "replay", str(tmp_path / "bad.json")).err
    (tmp_path / "empty").mkdir()
    assert "holds no recorded turn" in run(tmp_path, "eval", str(tmp_path / "empty")).err
