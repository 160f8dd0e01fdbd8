"""The Makefile and its scripts, without installing anything."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository whose environment is made already, with a `limpet` that prints its arguments."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "scripts"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    program = tmp_path / ".venv" / "bin" / "limpet"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!{sys.executable}\nimport sys\nprint(sys.argv[1:])\n")
    program.chmod(0o700)
    newest = max(path.stat().st_mtime for path in tmp_path.rglob("*")) + 10
    for stamp in ("core", "local", "dev"):
        (tmp_path / ".venv" / f".stamp-{stamp}").touch()
        os.utime(tmp_path / ".venv" / f".stamp-{stamp}", (newest, newest))
    return tmp_path


def make(clone: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    outer = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES", "ARGS", "Q")  # of the `make test` that runs us
    environ = {name: value for name, value in os.environ.items() if name not in outer}
    return subprocess.run(["make", *arguments], cwd=clone, env=environ, capture_output=True, text=True, timeout=60)


def test_a_question_arrives_as_it_was_typed(clone: Path) -> None:
    question = "Is $5 \"much\" for 'it'? `no` $(shell echo x) # 100%"
    done = make(clone, "ask", f"Q={question}")
    assert done.stdout == f"{['agent', '-m', question]}\n"


def test_the_second_time_nothing_is_installed(clone: Path) -> None:
    assert make(clone, "chat").stdout == "['chat']\n"
    assert "Nothing to be done" in make(clone, "install").stdout


def test_asking_nothing_is_a_usage_error(clone: Path) -> None:
    done = make(clone, "ask")
    assert done.returncode != 0
    assert 'make ask Q="' in done.stderr


def test_a_python_that_is_too_old_is_told_with_the_remedy(tmp_path: Path) -> None:
    environ = {"PATH": str(tmp_path), "PYTHON": "/no/such/python"}
    done = subprocess.run(
        ["/bin/sh", str(ROOT / "scripts/with-python.sh"), "x"], env=environ, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert "needs Python 3.11" in done.stderr
