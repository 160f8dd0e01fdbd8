"""Nothing gets out of the sandbox, nor past its door."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from limpet.sandbox.run import Sandbox
from tests.attack.escapes import ESCAPES, door, escape
from tests.attack.played import failures


@pytest.mark.skipif(Sandbox().report.kind == "none", reason="no sandbox")
def test_no_command_gets_out(tmp_path: Path) -> None:
    played = asyncio.run(escape(tmp_path))
    assert len(played) == len(ESCAPES)
    assert failures(played) == []


def test_the_door_leads_to_the_named_host_only(tmp_path: Path) -> None:
    assert failures(asyncio.run(door(tmp_path))) == []
