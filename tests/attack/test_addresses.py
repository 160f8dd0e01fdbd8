"""No connection to what is not public, by whatever spelling."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.attack.addresses import fetch, through_the_proxy
from tests.attack.played import failures


def test_the_canary_hears_nothing_of_what_tools_fetch(tmp_path: Path) -> None:
    played = asyncio.run(fetch(tmp_path))
    assert len(played) >= 200
    assert failures(played) == []


def test_the_canary_hears_nothing_of_what_commands_fetch(tmp_path: Path) -> None:
    assert failures(asyncio.run(through_the_proxy(tmp_path))) == []
