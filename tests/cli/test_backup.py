"""`limpet backup` and `limpet restore`."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import apsw
import msgspec
import pytest

from limpet.app import COMMANDS
from limpet.cli import run as run_here
from limpet.cli.backup import MANIFEST, Manifest
from limpet.cli.backup_read import restore
from limpet.config.load import load_settings
from limpet.config.paths import Home
from limpet.config.vault import Vault
from limpet.gateway.gateway import only_one
from limpet.store.blobs import BlobStore
from limpet.store.driver import Store
from limpet.store.owner import Owner


def run(*arguments: str | Path) -> int:
    return run_here([str(one) for one in arguments], commands=COMMANDS)


@pytest.fixture
def full(home: Path) -> Path:
    """A home with something of each kind in it."""
    assert run("onboard", "--yes", "--no-test", "--name", "Ada", "--provider", "ollama", "--model", "small") == 0
    Vault(home).put("openai", "sk-in-the-vault")
    (home / "server-token").write_text("the-token-of-the-server\n")
    (home / "workspace" / "tool.sh").write_text("#!/bin/sh\n")
    (home / "workspace" / "tool.sh").chmod(0o700)
    (home / "workspace" / "notes.bak").write_text("mine")
    (home / "logs" / "limpet.log").write_text("{}\n")
    asyncio.run(_fill(home))
    return home


async def _fill(home: Path) -> None:
    store = Store.open(str(home / "limpet.db"), process="test")
    await BlobStore(str(home / "blobs"), store).put(b"a picture")
    await store.close()


def manifest_of(file: Path) -> Manifest:
    with tarfile.open(file) as tar:
        found = tar.extractfile(MANIFEST)
        assert found is not None
        return msgspec.json.decode(found.read(), type=Manifest)


def contents(root: Path) -> dict[str, bytes]:
    """All files that are not of a running program, but for the database, whose pages may lie differently."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
        and path.relative_to(root).parts[0] not in ("run", "logs")
        and not path.name.startswith(("limpet.db", "secrets.lock"))
    }


def blobs_in(root: Path) -> int:
    connection = apsw.Connection(str(root / "limpet.db"), flags=apsw.SQLITE_OPEN_READONLY)
    count = connection.execute("SELECT COUNT(*) FROM blobs").get
    connection.close()
    return count


def test_a_home_comes_back_as_it_was(full: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("backup", tmp_path / "b.tgz", "--with-secrets") == 0
    assert (tmp_path / "b.tgz").stat().st_mode & 0o777 == 0o600
    monkeypatch.setenv("LIMPET_HOME", str(tmp_path / "other"))
    assert run("restore", tmp_path / "b.tgz") == 0
    assert contents(tmp_path / "other") == contents(full)
    assert blobs_in(tmp_path / "other") == 1
    assert (tmp_path / "other" / "workspace" / "tool.sh").stat().st_mode & 0o100
    assert (tmp_path / "other").stat().st_mode & 0o777 == 0o700
    assert not list(tmp_path.glob(".*"))


def test_secrets_are_not_in_it_unless_they_are_wanted(full: Path, tmp_path: Path) -> None:
    with (full / "config.toml").open("a") as file:
        file.write('[providers.mine]\nbase_url = "http://127.0.0.1:1/v1"\napi_key = "sk-in-the-file"\n')
        file.write('[providers.other]\nbase_url = "http://127.0.0.1:1/v1"\napi_key = "file:keys/other"\n')
    (full / "keys").mkdir()
    (full / "keys" / "other").write_text("sk-beside-the-file")
    assert run("backup", tmp_path / "b.tgz") == 0
    with tarfile.open(tmp_path / "b.tgz") as tar:
        names = tar.getnames()
        data = b"".join(found.read() for name in names if (found := tar.extractfile(name)))
    assert not [word for word in (b"sk-in-", b"sk-beside", b"the-token-of") if word in data]
    assert not [name for name in names if name.startswith(("secrets", "server-token", "keys", "logs", "run"))]
    assert any("providers.mine.api_key" in one for one in manifest_of(tmp_path / "b.tgz").left_out)


def test_a_backup_without_secrets_keeps_those_of_the_home_it_replaces(full: Path, tmp_path: Path) -> None:
    assert run("backup", tmp_path / "b.tgz") == 0
    (full / "workspace" / "SOUL.md").write_text("spoilt")
    assert run("restore", tmp_path / "b.tgz") == 2
    assert run("restore", tmp_path / "b.tgz", "--replace") == 0
    assert (full / "workspace" / "SOUL.md").read_text() != "spoilt"
    assert Vault(full).value("openai") == "sk-in-the-vault"
    (before,) = tmp_path.glob("home.before-restore-*")
    assert (before / "workspace" / "SOUL.md").read_text() == "spoilt"


def test_a_workspace_elsewhere_comes_into_the_home(full: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = tmp_path / "notes"
    outside.mkdir()
    (outside / "a.md").write_text("words")
    (outside / "link").symlink_to("/etc/passwd")
    assert run("config", "set", "agent.workspace", outside) == 0
    assert run("backup", tmp_path / "b.tgz") == 0
    assert any("link: a link" in one for one in manifest_of(tmp_path / "b.tgz").left_out)
    monkeypatch.setenv("LIMPET_HOME", str(tmp_path / "other"))
    assert run("restore", tmp_path / "b.tgz") == 0
    settings = load_settings(tmp_path / "other" / "config.toml", {}).settings
    assert settings.agent.workspace == "workspaces/main"
    assert (tmp_path / "other" / "workspaces" / "main" / "a.md").read_text() == "words"


WRITER = """
import asyncio, sys
from limpet.store.blobs import BlobStore
from limpet.store.driver import Store
async def main():
    store = Store.open(sys.argv[1] + "/limpet.db", process="writer")
    blobs = BlobStore(sys.argv[1] + "/blobs", store)
    print("ready", flush=True)
    for number in range(1_000_000):
        await blobs.put(str(number).encode() * 100)
asyncio.run(main())
"""


def test_each_row_of_a_running_writer_has_its_file(full: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(full)], stdout=subprocess.PIPE)
    try:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        assert run("backup", tmp_path / "b.tgz") == 0
    finally:
        writer.kill()
        writer.communicate()
    monkeypatch.setenv("LIMPET_HOME", str(tmp_path / "other"))
    assert run("restore", tmp_path / "b.tgz") == 0
    connection = apsw.Connection(str(tmp_path / "other" / "limpet.db"), flags=apsw.SQLITE_OPEN_READONLY)
    rows = {str(row[0]) for row in connection.execute("SELECT * FROM blobs")}
    connection.close()
    assert rows <= {path.name for path in (tmp_path / "other" / "blobs").rglob("*")}


def repacked(source: Path, target: Path, *, more: list[tarfile.TarInfo], manifest: Manifest | None = None) -> Path:
    """The backup `source` with further members, or another manifest."""
    with tarfile.open(source) as old, tarfile.open(target, "w:gz") as new:
        for member in more:
            new.addfile(member, io.BytesIO(b"x" * member.size))
        for member in old:
            found = old.extractfile(member)
            assert found is not None
            data = found.read()
            if member.name == MANIFEST and manifest is not None:
                data = msgspec.json.encode(manifest)
                member.size = len(data)
            new.addfile(member, io.BytesIO(data))
    return target


def _member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, 0 if link else 3
    return info


@pytest.mark.parametrize(
    "member",
    [
        _member("../outside"),
        _member("/tmp/limpet-outside"),
        _member("workspace/../../outside"),
        _member("workspace//twice"),
        _member("link", tarfile.SYMTYPE, "/etc"),
        _member("hard", tarfile.LNKTYPE, "config.toml"),
        _member("unannounced"),
    ],
    ids=lambda member: member.name,
)
def test_what_leads_out_or_is_not_announced_is_refused(full: Path, tmp_path: Path, member: tarfile.TarInfo) -> None:
    assert run("backup", tmp_path / "b.tgz") == 0
    bad = repacked(tmp_path / "b.tgz", tmp_path / "bad.tgz", more=[member])
    before = contents(full)
    assert run("restore", bad, "--replace") == 2
    assert contents(full) == before
    assert not (tmp_path / "outside").exists()
    assert not list(tmp_path.glob(".*"))


def test_what_a_killed_backup_left_is_deleted_by_a_later_one(full: Path, tmp_path: Path) -> None:
    old, new = tmp_path / ".limpet-backup-old", tmp_path / ".limpet-backup-new"
    for folder in (old, new):
        folder.mkdir()
        (folder / "backup").write_text("half")
    os.utime(old, (1, 1))
    assert run("backup", tmp_path / "b.tgz") == 0
    assert not old.exists()
    assert new.exists()


def test_an_archive_of_something_else_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "note").write_text("hello")
    with tarfile.open(tmp_path / "other.tgz", "w:gz") as tar:
        tar.add(tmp_path / "note", arcname="note")
    assert run("restore", tmp_path / "other.tgz", "--check") == 2
    assert "no whole backup: it has no manifest.json" in capsys.readouterr().err


@pytest.mark.parametrize("part", [0.0, 0.3, 0.9, 0.999])
def test_a_half_file_is_refused(full: Path, tmp_path: Path, part: float, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("backup", tmp_path / "b.tgz") == 0
    data = (tmp_path / "b.tgz").read_bytes()
    (tmp_path / "half.tgz").write_bytes(data[: int(len(data) * part)])
    assert run("restore", tmp_path / "half.tgz", "--check") == 2
    assert "no whole backup" in capsys.readouterr().err


def test_a_newer_schema_and_newer_settings_are_refused(full: Path, tmp_path: Path) -> None:
    connection = apsw.Connection(str(full / "limpet.db"))
    connection.execute("PRAGMA user_version = 9999")
    connection.close()
    assert run("backup", tmp_path / "b.tgz") == 4, "it is read back"
    assert run("restore", tmp_path / "b.tgz", "--replace") == 4


def test_a_damaged_database_in_it_is_refused(full: Path, tmp_path: Path) -> None:
    assert run("backup", tmp_path / "b.tgz") == 0
    found = manifest_of(tmp_path / "b.tgz")
    wrong = msgspec.structs.replace(found, databases=(*found.databases, "config.toml"))
    bad = repacked(tmp_path / "b.tgz", tmp_path / "bad.tgz", more=[], manifest=wrong)
    assert run("restore", bad, "--replace") == 4


def test_a_running_gateway_is_not_replaced(full: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("backup", tmp_path / "b.tgz") == 0
    with only_one(str(full / "run")):
        assert run("restore", tmp_path / "b.tgz", "--replace") == 2
    assert "A gateway runs already" in capsys.readouterr().err
    owner = Owner(str(full / "run"))
    assert run("restore", tmp_path / "b.tgz", "--replace") == 2
    owner.close()
    assert "Processes work in" in capsys.readouterr().err


def test_a_file_that_is_there_is_not_overwritten(full: Path, tmp_path: Path) -> None:
    (tmp_path / "b.tgz").write_text("precious")
    assert run("backup", tmp_path / "b.tgz") == 2
    assert (tmp_path / "b.tgz").read_text() == "precious"


KILLED = """
import os, signal, sys
from pathlib import Path
from limpet.cli.backup_read import restore
from limpet.config.paths import Home
root = Path(sys.argv[2])
def probe(step):
    if step == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)
restore(Path(sys.argv[1]), Home(root=root, config=root / "config.toml"), replace=True, probe=probe)
"""


@pytest.mark.parametrize(("step", "old"), [("checked", True), ("ready", True), ("in place", False)])
def test_killed_on_the_way_the_home_is_the_old_or_the_new_one(full: Path, tmp_path: Path, step: str, old: bool) -> None:
    assert run("backup", tmp_path / "b.tgz", "--with-secrets") == 0
    restored = contents(full)
    (full / "workspace" / "later.md").write_text("later")
    before = contents(full)
    done = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "b.tgz", full, step], env=os.environ)
    assert done.returncode == -signal.SIGKILL
    assert contents(full) == (before if old else restored)
    if not old:
        (aside,) = tmp_path.glob("home.before-restore-*")
        assert contents(aside) == before


@pytest.mark.parametrize("step", ["", "aside"])
def test_where_folders_cannot_be_swapped_the_old_home_lies_whole_beside(full: Path, tmp_path: Path, step: str) -> None:
    assert run("backup", tmp_path / "b.tgz", "--with-secrets") == 0
    (full / "workspace" / "later.md").write_text("later")
    before = contents(full)

    def probe(said: str) -> None:
        if said == step:
            raise KeyboardInterrupt  # whoever ends it here: what is on the disk is what counts

    home = Home(root=full, config=full / "config.toml")
    with contextlib.suppress(KeyboardInterrupt):
        restore(tmp_path / "b.tgz", home, replace=True, probe=probe, swap=lambda one, other: False)
    (aside,) = tmp_path.glob("home.before-restore-*")
    assert contents(aside) == before
    assert full.exists() is not bool(step)
