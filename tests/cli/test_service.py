"""`limpet service`: what is written, and what the user's systemd is told."""

from __future__ import annotations

import os
import plistlib
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import limpet
from limpet.app import COMMANDS
from limpet.cli import run as run_here
from limpet.cli.service import Service, launchd_plist, service_name, systemd_unit
from limpet.sandbox.probe import examine

ODD = Service(
    name="limpet",
    program=("/opt/my $HOME/100%/py", "-m", "limpet", 'say "hi" \\n'),
    environ={"LIMPET_HOME": "/data/a b/100%/$x", "PATH": "/usr/bin:/bin"},
    writable=(Path("/data/a b/100%/$x"),),
    logs=Path("/data/logs"),
)

FAKE = """#!/bin/sh
echo "$(basename "$0") $*" >> "$FAKE_LOG"
case "$(basename "$0") $*" in
    *"$FAKE_FAILS"*) [ -z "$FAKE_FAILS" ] || exit 1;;
esac
case "$*" in
    *is-active*) echo active;;
    *is-enabled*) echo enabled;;
    *Linger*) echo no;;
esac
"""


def run(*arguments: str) -> int:
    return run_here(arguments, commands=COMMANDS)


@pytest.fixture
def told(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The programs of systemd replaced on PATH by one that writes down what it was told; that file."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("systemctl", "systemd-run", "loginctl", "journalctl"):
        (folder / name).write_text(FAKE)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "told"))
    monkeypatch.setenv("FAKE_FAILS", "")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    return tmp_path / "told"


def unit_of(tmp_path: Path) -> Path:
    (found,) = (tmp_path / "xdg" / "systemd" / "user").glob("*")
    return found


@pytest.mark.skipif(sys.platform == "darwin", reason="systemd")
def test_install_writes_a_unit_and_has_it_run(told: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("service", "install") == 0
    unit = unit_of(tmp_path)
    assert stat.S_IMODE(unit.stat().st_mode) == 0o600
    assert "ProtectSystem=strict" in unit.read_text()
    lines = told.read_text().splitlines()
    assert f"systemctl --user restart {unit.name}" in lines
    assert f"systemctl --user enable {unit.name}" in lines
    assert "loginctl enable-linger" in " ".join(capsys.readouterr().out.split())


@pytest.mark.skipif(sys.platform == "darwin", reason="systemd")
def test_where_mounts_do_not_work_they_are_left_out(
    told: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAKE_FAILS", "systemd-run")
    assert run("service", "install") == 0
    text = unit_of(tmp_path).read_text()
    assert "PrivateUsers" not in text
    assert "NoNewPrivileges=yes" in text
    assert "left out" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "darwin", reason="systemd")
def test_uninstall_takes_away_what_install_wrote(told: Path, tmp_path: Path, home: Path) -> None:
    assert run("service", "uninstall") == 2
    assert run("service", "install") == 0
    name = unit_of(tmp_path).name
    assert run("service", "restart") == 0
    assert run("service", "status") == 1, "the service is there, the gateway is not"
    assert run("service", "uninstall") == 0
    assert not list((tmp_path / "xdg" / "systemd" / "user").glob("*"))
    assert f"systemctl --user disable --now {name}" in told.read_text()
    assert home.exists()


@pytest.mark.skipif(sys.platform == "darwin", reason="systemd")
def test_a_file_of_somebody_else_is_not_overwritten(told: Path, tmp_path: Path) -> None:
    assert run("service", "install") == 0
    unit = unit_of(tmp_path)
    unit.write_text("[Service]\nExecStart=/bin/mine\n")
    assert run("service", "install") == 2
    assert "/bin/mine" in unit.read_text()


@pytest.mark.skipif(sys.platform == "darwin", reason="systemd")
@pytest.mark.parametrize(("mark", "words"), [("container", "In this container"), ("", "cannot be reached")])
def test_without_a_manager_it_says_what_to_do(
    told: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], mark: str, words: str
) -> None:
    monkeypatch.setenv("FAKE_FAILS", "show-environment")
    if os.path.exists("/.dockerenv") and not mark:
        pytest.skip("this is a container")
    monkeypatch.setenv("container", mark)
    assert run("service", "install") == 2
    assert words in capsys.readouterr().err


def test_print_writes_nothing(home: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert run("service", "install", "--print") == 0
    assert b"limpet" in capfdbinary.readouterr().out
    assert not home.exists()


def test_no_key_gets_into_the_file(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-never-in-a-file")
    assert run("service", "install", "--print") == 0
    assert b"sk-never" not in capfdbinary.readouterr().out


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("mounts", [True, False])
def test_systemd_understands_the_unit(tmp_path: Path, mounts: bool) -> None:
    program = shutil.which("true") or "/bin/true"
    odd = Service("limpet", (program, *ODD.program[1:]), ODD.environ, ODD.writable, ODD.logs)
    (tmp_path / "limpet.service").write_text(systemd_unit(odd, mounts=mounts))
    done = subprocess.run(
        ["systemd-analyze", "--user", "--man=no", "verify", tmp_path / "limpet.service"],
        env={"PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    said = [line for line in done.stderr.splitlines() if "DelegateSubgroup" not in line]  # of systemd 254
    assert (done.returncode, said) == (0, [])


def test_odd_names_are_quoted_for_systemd() -> None:
    text = systemd_unit(ODD, mounts=True)
    assert 'ExecStart="/opt/my $$HOME/100%%/py" "-m" "limpet" "say \\"hi\\" \\\\n"' in text
    assert 'Environment="LIMPET_HOME=/data/a b/100%%/$x"' in text
    assert 'ReadWritePaths="-/data/a b/100%%/$x"' in text


def test_launchd_is_given_the_same() -> None:
    found = plistlib.loads(launchd_plist(ODD))
    assert found["ProgramArguments"] == list(ODD.program)
    assert found["EnvironmentVariables"] == dict(ODD.environ)
    assert (found["Label"], found["Umask"], found["RunAtLoad"]) == ("io.limpet.limpet", 0o077, True)


def test_each_home_has_a_service_of_its_own() -> None:
    own = Path("/home/ada")
    names = {service_name(root, own) for root in (own / ".limpet", own / "a/x", own / "b/x", Path("/data/Ä ö"))}
    assert len(names) == 4
    assert "limpet" in names
    assert all(name.replace("-", "").isalnum() and name.isascii() for name in names)


@pytest.mark.skipif(examine().kind == "none", reason="there is no sandbox here")
def test_the_sandbox_works_inside_what_hardens_the_unit(tmp_path: Path) -> None:
    """What `PrivateUsers`, `ProtectSystem=strict`, `PrivateTmp` and `NoNewPrivileges` come to, made with bubblewrap."""
    hardened = [examine().path, "--unshare-user", "--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev"]
    hardened += ["--dev-bind", "/proc", "/proc", "--dev-bind", "/sys", "/sys"]  # `strict` leaves these alone
    hardened += ["--tmpfs", "/tmp", "--bind", str(tmp_path), str(tmp_path)]  # bubblewrap sets no_new_privs itself
    for kept in (sys.prefix, str(Path(limpet.__file__).parents[1])):  # these may lie in /tmp themselves
        hardened += ["--ro-bind", kept, kept]
    trial = "import sys; from limpet.sandbox.probe import examine; r = examine(); print(r); sys.exit(r.kind == 'none')"
    done = subprocess.run(
        [*hardened, sys.executable, "-c", trial],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
