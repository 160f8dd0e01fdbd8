"""`limpet doctor`."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import apsw
import msgspec
import pytest
from aiohttp import web

from limpet.checks import check_database, check_model, check_undo
from limpet.cli import run
from limpet.cli.doctor import (
    CHECKS,
    Check,
    Finding,
    Situation,
    check_config,
    check_home,
    check_workspace,
    examine,
)
from limpet.config.paths import Home, find_home
from limpet.errors import SandboxError
from limpet.undo.copies import Copies

EXTRA = f"{__name__}:check_extra"


async def check_extra(situation: Situation) -> list[Finding]:
    return [Finding("extra", "broken", "a wheel is off", "Put it on.")]


async def check_crash(situation: Situation) -> list[Finding]:
    raise ZeroDivisionError("oops")


async def check_refusal(situation: Situation) -> list[Finding]:
    raise SandboxError("no namespaces", hint="Allow them.")


def findings(check: Check, root: Path, text: str | None = None) -> list[Finding]:
    home = Home(root=root, config=root / "config.toml")
    if text is not None:
        home.config.write_text(text)
        home.config.chmod(0o600)
    return asyncio.run(check(Situation(home=home, environ={"PATH": os.environ["PATH"]})))


def test_a_fresh_machine_is_well(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["doctor"])
    out = capsys.readouterr().out
    assert code == 0, out
    assert not home.exists(), "looking changes nothing"
    for check in CHECKS:
        name = check.__name__.removeprefix("check_").replace("machine", "system")
        assert f"{name}:" in out


def test_what_is_broken_is_exit_1_with_its_remedy(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor"], checks=[EXTRA]) == 1
    out = capsys.readouterr().out
    assert "BROKEN extra:\n    a wheel is off\n    -> Put it on." in out
    assert "1 broken" in out


def test_json_is_one_object(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--json"], checks=[EXTRA]) == 1
    report = msgspec.json.decode(capsys.readouterr().out)
    assert report["broken"] == 1
    assert report["findings"][-1] == {
        "check": "extra",
        "level": "broken",
        "text": "a wheel is off",
        "remedy": "Put it on.",
        "id": "extra",
    }


def test_a_check_that_fails_is_a_finding_and_the_others_run(tmp_path: Path) -> None:
    home = Home(root=tmp_path, config=tmp_path / "config.toml")
    found = asyncio.run(examine(Situation(home=home, environ={}), [check_crash, check_refusal, check_extra]))
    assert [finding.level for finding in found] == ["broken"] * 3
    assert "ZeroDivisionError: oops" in found[0].text
    assert found[1] == Finding("refusal", "broken", "no namespaces", "Allow them.")


def test_every_finding_that_is_not_fine_has_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert findings(check_home, tmp_path / "file")[0].level == "broken"
    assert findings(check_home, tmp_path / "file" / "below")[0].level == "broken"
    assert findings(check_home, tmp_path / ("long" * 40))[0].level == "ok"
    tmp_path.chmod(0o755)
    warning = findings(check_home, tmp_path)[0]
    assert (warning.level, warning.remedy) == ("warning", f"chmod 700 {tmp_path}")


@pytest.mark.parametrize(
    ("text", "level", "words"),
    [
        ("", "ok", "is fine"),
        ("[agent]\nmodle = 1\n", "warning", "agent.modle"),
        ("[agent]\nmodel = 1\n", "broken", "line 2, agent.model"),
        ("[providers.x]\napi_key = 'sk-123456789'\n", "warning", "providers.x.api_key stands in"),
        ("[providers.x]\napi_key = 'env:NOT_SET'\n", "broken", "NOT_SET is not set"),
        ("[providers.x]\napi_key = 'file:key'\n", "broken", "cannot be read"),
    ],
)
def test_the_configuration_is_judged(tmp_path: Path, text: str, level: str, words: str) -> None:
    found = findings(check_config, tmp_path, text)
    assert (found[0].level, len(found)) == (level, 1)
    assert words in found[0].text
    assert found[0].remedy or level == "ok"


def test_a_short_secret_is_told(tmp_path: Path) -> None:
    (tmp_path / "pin").write_text("1234")
    (found,) = findings(check_config, tmp_path, "[providers.x]\napi_key = 'file:pin'\n")
    assert "too short to be redacted" in found.text


def test_the_workspace_is_judged(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name, level in (("file", "broken"), ("link", "broken"), ("new", "ok")):
        (found,) = findings(check_workspace, tmp_path, f"[agent]\nworkspace = '{tmp_path / name}'\n")
        assert found.level == level


def test_a_workspace_that_cannot_be_used_is_broken(tmp_path: Path) -> None:
    (tmp_path / "ws").write_text("")
    found = findings(check_workspace, tmp_path, f'[agent]\nworkspace = "{tmp_path}/ws/below"\n')
    assert [finding.level for finding in found] == ["broken"]
    assert found[0].remedy


def test_a_database_that_cannot_be_opened_is_not_called_damaged(tmp_path: Path) -> None:
    (tmp_path / "limpet.db").mkdir()
    (finding,) = findings(check_database, tmp_path)
    assert finding.level == "broken"
    assert "damaged" not in finding.text
    assert finding.remedy


def test_a_damaged_database_is_told(tmp_path: Path) -> None:
    (tmp_path / "limpet.db").write_bytes(b"this is no database at all" * 100)
    (finding,) = findings(check_database, tmp_path)
    assert "damaged" in finding.text


def test_a_database_of_a_newer_limpet_is_told(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "limpet.db"))
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    (finding,) = findings(check_database, tmp_path)
    assert (finding.level, "newer Limpet" in finding.text, bool(finding.remedy)) == ("broken", True, True)


def test_copies_for_undo_are_counted_and_a_damaged_file_is_told(tmp_path: Path) -> None:
    (none,) = findings(check_undo, tmp_path)
    assert none.text == "nothing is kept yet (for 14 days, up to 1,000 MB)"
    copies = Copies(str(tmp_path / "undo" / "copies.db"))
    with copies.writing():
        copies.keep(b"h" * 32, b"x" * 200_000, now=1)
    copies.close()
    (some,) = findings(check_undo, tmp_path)
    assert some.text.startswith("1 copies, 0.2 MB")
    (tmp_path / "undo" / "copies.db").write_bytes(b"this is no database at all" * 100)
    (damaged,) = findings(check_undo, tmp_path)
    assert (damaged.level, bool(damaged.remedy)) == ("warning", True)


def ollama(folder: Path, config: str = "") -> list[Finding]:
    """What doctor says of a model at an Ollama that was started with its usual small window."""
    answers = {
        "/v1/models": {"data": [{"id": "qwen3"}]},
        "/api/show": {"parameters": "", "model_info": {"qwen3.context_length": 40_960}},
    }

    async def answer(request: web.Request) -> web.Response:
        return web.json_response(answers[request.path]) if request.path in answers else web.Response(status=404)

    async def main() -> list[Finding]:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            environ = {"HOME": str(folder), "OLLAMA_HOST": f"127.0.0.1:{runner.addresses[0][1]}"}
            home = find_home(environ)
            home.root.mkdir(exist_ok=True)
            home.config.write_text(config)
            return await check_model(Situation(home=home, environ=environ))
        finally:
            await runner.cleanup()

    return asyncio.run(main())


def test_a_server_that_drops_what_does_not_fit_is_named(tmp_path: Path) -> None:
    model, window = ollama(tmp_path)
    assert (model.level, window.level) == ("ok", "warning")
    assert "4096 tokens; the server drops what does not fit" in window.text
    assert "OLLAMA_CONTEXT_LENGTH" in window.remedy


def test_c25b_a_configured_window_that_the_server_does_not_have_is_an_error(tmp_path: Path) -> None:
    model, window = ollama(tmp_path, "[providers.ollama]\nwindow = 131072\n")
    assert (model.level, window.level) == ("ok", "broken")
    assert "4096" in window.text
    assert "OLLAMA_CONTEXT_LENGTH" in window.remedy
