"""Finding and running commands; what becomes an exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from limpet import __version__
from limpet.cli import COMMANDS, run
from limpet.errors import LeaseHeldError, NoModelError, StoreError, TurnStopped, UpstreamError

HERE = f"{__name__}:"
ERRORS = {
    "model": (UpstreamError("it broke", provider="x"), 3),
    "none": (NoModelError("no model", hint="get one"), 2),
    "store": (StoreError("disk"), 4),
    "lease": (LeaseHeldError("held", owner="1"), 5),
    "stop": (TurnStopped("stopped"), 130),
    "abort": (click.Abort(), 130),
    "interrupt": (KeyboardInterrupt(), 130),
}


@click.command()
@click.argument("which")
def fail(which: str) -> None:
    raise ERRORS[which][0]


@click.command()
def seven() -> int:
    return 7


TABLE = {"fail": (f"{HERE}fail", "Fails."), "seven": (f"{HERE}seven", "Gives 7."), "gone": ("nowhere:x", "Not there.")}


@pytest.mark.parametrize("which", sorted(ERRORS))
def test_errors_become_exit_codes(which: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fail", which], commands=TABLE) == ERRORS[which][1]
    assert "Traceback" not in capsys.readouterr().err


def test_the_hint_of_an_error_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    run(["fail", "none"], commands=TABLE)
    assert capsys.readouterr().err == "no model\nget one\n"


def test_a_command_gives_its_exit_code() -> None:
    assert run(["seven"], commands=TABLE) == 7


def test_help_lists_commands_without_importing_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([], commands=TABLE) == 0
    out = capsys.readouterr().out
    assert all(text in out for _, text in TABLE.values())


def test_a_mistyped_command_is_a_usage_error_with_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctr"]) == 2
    assert "Did you mean doctor?" in capsys.readouterr().err
    assert run(["zzz"]) == 2
    assert run(["config", "get", "--nonsense"]) == 2


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    for name in COMMANDS:
        assert run([name, "--help"]) == 0
        assert "Usage: limpet" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--version"], ["-V"], ["--config", "x", "--version"]])
def test_version(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 0
    assert capsys.readouterr().out == f"limpet {__version__}\n"


def test_version_loads_nothing() -> None:
    code = "import sys; from limpet.cli import run; run(['--version']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert not {"click", "asyncio", "msgspec", "logging", "tomllib"} & set(done.stderr.split())


@pytest.mark.parametrize(
    "extra",
    [{"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}, {"PYTHONIOENCODING": "ascii"}, {"COLUMNS": "20"}],
)
def test_any_locale_and_width_will_do(tmp_path: Path, extra: dict[str, str]) -> None:
    home = tmp_path / "höme"
    environ = {**os.environ, "LIMPET_HOME": str(home), **extra}
    code = "import sys; from limpet.cli import run; sys.exit(run(sys.argv[1:]))"
    for command in (["config", "path"], ["--help"], ["config", "get"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *command],
            env=environ,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, b"")


def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    code = "import sys; from limpet.cli import run; sys.exit(run(['config', 'get']))"
    reader, writer = os.pipe()
    os.close(reader)
    environ = {**os.environ, "LIMPET_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environ, stdout=writer, stderr=subprocess.PIPE, timeout=60)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
