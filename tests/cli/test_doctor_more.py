"""`limpet doctor`: the home, the machine, others; and `--fix`."""

from __future__ import annotations

import asyncio
import os
import re
import stat
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from limpet.app import CHECKS, COMMANDS
from limpet.cli import run as run_here
from limpet.cli.doctor import Check, Finding, Situation
from limpet.cli.doctor_home import check_files, check_gateway, check_index, check_locks
from limpet.cli.doctor_machine import check_commands, check_extras, check_gpu
from limpet.cli.doctor_network import check_network, check_providers
from limpet.config.paths import Home
from limpet.gateway.status import FILE, Snapshot, write_snapshot
from limpet.gateway.supervisor import Health
from limpet.store.lock import WriteLock
from limpet.store.owner import Owner

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str) -> int:
    return run_here(arguments, commands=COMMANDS, checks=CHECKS)


def findings(
    check: Check, root: Path, config: str = "", *, environ: Mapping[str, str] | None = None, offline: bool = False
) -> list[Finding]:
    root.mkdir(exist_ok=True)
    home = Home(root=root, config=root / "config.toml")
    if config:
        home.config.write_text(config)
    found = asyncio.run(check(Situation(home, environ or {"PATH": os.environ["PATH"]}, offline)))
    assert all(one.remedy for one in found if one.level not in ("ok",))
    return [one.named() for one in found]


def ids(found: list[Finding]) -> list[str]:
    return [one.id for one in found if one.level != "ok"]


def folders(root: Path) -> None:
    for name in ("run", "blobs", "logs"):
        (root / name).mkdir(mode=0o700, parents=True)


def test_modes_folders_and_leftovers_are_found_and_mended(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders(home)
    (home / "logs").rmdir()
    (home / "blobs").chmod(0o755)
    (home / "server-token").write_text("x")
    (home / "server-token").chmod(0o644)
    old = home / ".config.toml.abc"
    old.write_text("draft")
    os.utime(old, (1, 1))
    (home / ".config.toml.new").write_text("somebody is at it")
    (home / "run" / "99-dead.lock").write_text("")
    assert {"files.mode", "files.missing", "files.left-over"} <= set(ids(findings(check_files, home)))
    run("doctor", "--offline")
    assert old.exists(), "looking changes nothing"
    run("doctor", "--offline", "--fix", "--yes")
    assert stat.S_IMODE((home / "server-token").stat().st_mode) == 0o600
    assert stat.S_IMODE((home / "blobs").stat().st_mode) == 0o700
    assert (home / "logs").is_dir()
    assert not old.exists()
    assert (home / ".config.toml.new").exists()
    assert not (home / "run" / "99-dead.lock").exists()
    said = capsys.readouterr().err
    assert f"fix: chmod 600 {home / 'server-token'}" in said
    assert f"fix: delete {old}" in said
    assert not ids(findings(check_files, home))


def test_without_a_person_fix_wants_yes(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("doctor", "--fix") == 2
    assert run("doctor", "--yes") == 2
    assert "--fix --yes" in capsys.readouterr().err


def test_json_says_what_was_fixed_with_stable_ids(home: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    folders(home)
    home.chmod(0o755)
    run("doctor", "--offline", "--fix", "--yes", "--json")
    told = msgspec.json.decode(capfdbinary.readouterr().out)
    assert told["fixed"] == [{"what": f"chmod 700 {home}", "fault": ""}]
    assert all(one["id"] for one in told["findings"])
    assert "network.skipped" in {one["id"] for one in told["findings"]}


def test_a_link_is_never_followed(tmp_path: Path) -> None:
    folders(tmp_path / "home")
    (tmp_path / "mine").write_text("x")
    (tmp_path / "mine").chmod(0o644)
    (tmp_path / "home" / "server-token").symlink_to(tmp_path / "mine")
    assert "files.mode" not in ids(findings(check_files, tmp_path / "home"))


def test_who_holds_the_write_lock_is_named(tmp_path: Path) -> None:
    folders(tmp_path / "home")
    owner = Owner(str(tmp_path / "home" / "run"))
    lock = WriteLock(str(tmp_path / "home" / "limpet.db.lock"), holder="4711-abc")
    with lock.held():
        (held,) = findings(check_locks, tmp_path / "home")
    (free,) = findings(check_locks, tmp_path / "home")
    lock.close()
    owner.close()
    assert (held.id, "4711" in held.remedy) == ("locks.write", True)
    assert str(os.getpid()) in free.text


TELEGRAM = '[channels.telegram.main]\ntoken = "123:abcdefghij"\n'


@pytest.mark.parametrize(
    ("state", "expected"),
    [("connected", []), ("refused", ["channel.refused"]), ("degraded", ["channel.down"])],
)
def test_the_gateway_and_its_channels_are_looked_at(tmp_path: Path, state: str, expected: list[str]) -> None:
    folders(tmp_path / "home")
    owner = Owner(str(tmp_path / "home" / "run"))
    channel = msgspec.convert({"channel": "telegram", "account": "main", "state": state, "since": 1}, Health)
    now = time.time_ns() // 1_000_000
    write_snapshot(str(tmp_path / "home" / "run" / FILE), Snapshot(owner.name, now, (channel,)))
    assert ids(findings(check_gateway, tmp_path / "home", TELEGRAM)) == expected
    owner.close()
    assert ids(findings(check_gateway, tmp_path / "home")) == ["gateway.stopped"]


def test_a_gateway_that_hangs_is_broken(tmp_path: Path) -> None:
    folders(tmp_path / "home")
    owner = Owner(str(tmp_path / "home" / "run"))
    write_snapshot(str(tmp_path / "home" / "run" / FILE), Snapshot(owner.name, 1))
    assert ids(findings(check_gateway, tmp_path / "home")) == ["gateway.hung"]
    owner.close()


def test_a_damaged_index_is_deleted_by_fix(home: Path) -> None:
    folders(home)
    (home / "index" / "main").mkdir(parents=True)
    (home / "index" / "main" / "3.db").write_bytes(b"no database" * 500)
    assert ids(findings(check_index, home)) == ["index.damaged"]
    run("doctor", "--offline", "--fix", "--yes")
    assert not (home / "index" / "main" / "3.db").exists()


def test_programs_that_the_settings_name_are_looked_for(tmp_path: Path) -> None:
    config = '[mcp.servers.x]\ncommand = "no-such-program-here"\n'
    found = findings(check_commands, tmp_path, config)
    assert "commands.missing" in ids(found)
    assert "no-such-program-here" in found[0].text
    assert findings(check_gpu, tmp_path)


def test_an_extra_that_is_configured_and_missing_is_broken(tmp_path: Path) -> None:
    found = findings(check_extras, tmp_path, '[providers.bedrock]\nbase_url = "http://127.0.0.1:1"\n')
    assert found[-1].level == "ok"


def test_each_id_is_documented() -> None:
    sources = [*(ROOT / "src/limpet/cli").glob("doctor*.py"), ROOT / "src/limpet/checks.py"]
    named = {id for path in sources for id in re.findall(r'"([a-z]+\.[a-z-]+)"', path.read_text("utf-8"))}
    text = (ROOT / "docs/operations.md").read_text("utf-8")
    assert not {id for id in named if not id.startswith(("config.toml", "limpet.db")) and f"`{id}`" not in text}


async def _asked(root: Path, *, status: int, date: str = "", offline: bool = False) -> list[Finding]:
    """What is said of a service that answers so, with a key in the settings."""

    async def answer(request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == "Bearer sk-of-the-test"
        return web.json_response({"data": []}, status=status, headers={"Date": date} if date else {})

    app = web.Application()
    app.router.add_get("/v1/models", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        home = Home(root=root, config=root / "config.toml")
        home.config.write_text(
            f'[agent]\nmodel = "mine/x"\n[providers.mine]\nbase_url = "{url}"\napi_key = "env:MINE"\n'
        )
        found = await check_providers(Situation(home, {"MINE": "sk-of-the-test"}, offline))
        return [one.named() for one in found]
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("status", "expected"),
    [(200, []), (401, ["provider.refused"]), (429, ["provider.limited"]), (503, ["provider.unreachable"]), (404, [])],
)
def test_each_key_is_tried_at_its_service(tmp_path: Path, status: int, expected: list[str]) -> None:
    found = asyncio.run(_asked(tmp_path, status=status))
    assert ids(found) == expected
    assert "sk-of-the-test" not in str(found)


def test_a_clock_that_is_wrong_is_told(tmp_path: Path) -> None:
    found = asyncio.run(_asked(tmp_path, status=200, date="Thu, 01 Jan 2026 00:00:00 GMT"))
    assert ids(found) == ["clock.skew"]


def test_offline_asks_nobody(tmp_path: Path) -> None:
    assert asyncio.run(_asked(tmp_path, status=401, offline=True)) == []
    assert ids(findings(check_network, tmp_path, offline=True)) == ["network.skipped"]


def test_a_service_that_is_not_there_is_told(tmp_path: Path) -> None:
    config = '[agent]\nmodel = "mine/x"\n[providers.mine]\nbase_url = "http://127.0.0.1:9/v1"\n'
    (found,) = findings(check_providers, tmp_path, config)
    assert (found.id, found.level) == ("provider.unreachable", "broken")
