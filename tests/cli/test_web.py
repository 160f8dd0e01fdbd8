"""`limpet web`: a link, and a password."""

from __future__ import annotations

from pathlib import Path

import pytest

from limpet.config import page_password
from tests.cli.program import run

pytest.importorskip("nicegui", reason="the extra `web` is not installed")


def test_without_a_gateway_there_is_no_page(home: Path) -> None:
    done = run(home, "web", "--no-open")
    assert done.code == 2
    assert "No gateway runs" in done.err


def test_a_password_is_kept_as_its_hash_and_taken_away(home: Path) -> None:
    assert run(home, "web", "password", stdin=b"many limpets on one rock\n").code == 0
    assert page_password.matches(home, "many limpets on one rock")
    assert run(home, "web", "password", "--remove").code == 0
    assert not page_password.is_set(home)


def test_a_short_password_is_refused(home: Path) -> None:
    done = run(home, "web", "password", stdin=b"limpet\n")
    assert done.code != 0
    assert "at least 10" in done.err
