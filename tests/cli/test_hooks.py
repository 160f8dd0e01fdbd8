"""`limpet hooks`, and turns with hooks of the configuration, in the real program."""

from __future__ import annotations

from pathlib import Path

import pytest

from limpet.cli.hooks_command import SAMPLES
from limpet.sandbox.probe import examine
from limpet.testing.fakes.script import Call, Reply
from limpet.types.hook import HookPoint
from tests.cli.program import ask, run
from tests.plugins.installing import install, install_hello

REPORT = examine()
needs_sandbox = pytest.mark.skipif(REPORT.kind == "none", reason=f"no sandbox: {REPORT.reason}")
GUARD = """
[[hooks]]
name = "no-lists"
points = ["before_tool", "turn_ended"]
tool = "list_*"
command = "echo 'no lists today'; exit 2"
"""


def configured(home: Path, config: str = GUARD) -> Path:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(config)
    return home


def test_there_are_none(tmp_path: Path) -> None:
    assert "There are no hooks" in run(tmp_path, "hooks", "list").out


def test_hooks_of_configuration_and_plugins_are_listed(tmp_path: Path) -> None:
    home, folder = configured(tmp_path / "home"), install_hello(tmp_path / "a")
    out = run(home, "hooks", "list", PYTHONPATH=str(folder)).out
    assert "no-lists" in out
    assert "before_tool, turn_ended, tools list_*" in " ".join(out.split())
    assert "plug-in, not trusted, never imported" in out
    run(home, "plugins", "trust", "limpet-plugin-hello", PYTHONPATH=str(folder))
    assert "plug-in, trusted; before_tool" in " ".join(run(home, "hooks", "list", PYTHONPATH=str(folder)).out.split())


def test_an_untrusted_plugin_is_not_imported(tmp_path: Path) -> None:
    folder = install(tmp_path / "a", "loud", {"loud_plugin.py": "raise SystemExit('imported!')\n"}, tools="loud:x")
    ended = run(configured(tmp_path / "home"), "hooks", "list", PYTHONPATH=str(folder))
    assert ended.code == 0
    assert "imported!" not in ended.err


@needs_sandbox
def test_a_test_shows_what_a_hook_is_told_and_says(tmp_path: Path) -> None:
    home = configured(tmp_path / "home")
    skipped = run(home, "hooks", "test", "no-lists")
    assert "is about the tools list_*, so it is not asked" in skipped.out
    ended = run(home, "hooks", "test", "no-lists", "--tool", "list_dir")
    assert ended.code == 0
    assert '"point":"before_tool"' in ended.out
    assert "the call is refused: no lists today" in ended.out


@needs_sandbox
def test_no_answer_is_exit_code_one_and_says_what_it_counts_as(tmp_path: Path) -> None:
    home = configured(tmp_path / "home")
    ended = run(home, "hooks", "test", "no-lists", "--point", "turn_ended")
    assert ended.code == 1
    assert "changes nothing" in ended.out


def test_unknown_hooks_and_points_are_told_apart(tmp_path: Path) -> None:
    home = configured(tmp_path / "home")
    assert "There is no hook 'x'" in run(home, "hooks", "test", "x").err
    assert "It is at before_tool, turn_ended" in run(home, "hooks", "test", "no-lists", "--point", "compacted").err


@pytest.mark.parametrize(
    ("config", "fault"),
    [
        (
            '[[hooks]]\nname = "a b"\npoints = ["before_tool"]\ncommand = "x"',
            "hooks.1.name: expected a name",
        ),
        ('[[hooks]]\nname = "a"\npoints = ["later"]\ncommand = "x"', "hooks.1.points.1: expected one of message_rec"),
        ('[[hooks]]\nname = "a"\npoints = ["before_tool"]\ncommand = "x"\ntimeout = 0', "hooks.1.timeout: expected"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, config: str, fault: str) -> None:
    ended = run(configured(tmp_path / "home", config), "hooks", "list")
    assert ended.code == 2
    assert fault in ended.err


@needs_sandbox
def test_a_hook_refuses_a_call_and_the_model_reads_why(tmp_path: Path) -> None:
    seen: list[str] = []

    def script(request: object) -> Reply:
        seen.append(str(request))
        return Reply(calls=(Call("list_dir", '{"path": "."}'),)) if len(seen) == 1 else Reply(text=("well",))

    assert ask(configured(tmp_path / "home"), script, "agent", "-m", "go").code == 0
    assert "Not allowed: no-lists says: no lists today" in seen[1]


def test_every_point_has_a_sample_of_itself() -> None:
    assert tuple(SAMPLES) == HookPoint.__args__
    assert [one.__struct_config__.tag for one in SAMPLES.values()] == list(HookPoint.__args__)
    assert len(SAMPLES) <= 12
