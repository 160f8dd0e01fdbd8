"""`limpet mcp login` and `logout`, as far as they go without a server."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from limpet.mcp.oauth import Login, Logins
from tests.cli.program import run


def configured(home: Path, text: str) -> None:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(text)


def test_a_program_has_nowhere_to_log_in(tmp_path: Path) -> None:
    configured(tmp_path, '[mcp.servers.time]\ncommand = "uvx"\n')
    ended = run(tmp_path, "mcp", "login", "time")
    assert ended.code == 2
    assert "nowhere to log in" in ended.err


def test_an_address_where_nobody_is_is_an_error_with_the_reason(tmp_path: Path) -> None:
    configured(tmp_path, '[mcp.servers.far]\nurl = "http://127.0.0.1:9/mcp"\n')
    ended = run(tmp_path, "mcp", "login", "far", "--no-browser")
    assert ended.code == 2
    assert "Logging in to far failed" in ended.err
    assert "Traceback" not in ended.err


def test_logging_out_forgets_what_was_kept(tmp_path: Path) -> None:
    configured(tmp_path, '[mcp.servers.far]\nurl = "http://127.0.0.1:9/mcp"\n')
    Logins(tmp_path).keep("far", Login(url="http://127.0.0.1:9/mcp", tokens="{}"))
    assert "Logged out of far" in run(tmp_path, "mcp", "logout", "far").out
    assert Logins(tmp_path).find("far", "http://127.0.0.1:9/mcp") is None
    assert run(tmp_path, "mcp", "logout", "far").code == 2
