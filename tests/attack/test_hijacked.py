"""A hijacked model gets nothing done without the owner's yes; the owner himself does."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from limpet.sandbox.run import Sandbox
from tests.attack.hijacked import SOURCES, attacks, hijack, obey
from tests.attack.played import failures

pytestmark = pytest.mark.skipif(Sandbox().report.kind == "none", reason="no sandbox")


@pytest.mark.parametrize("source", SOURCES)
def test_no_sink_fires(tmp_path: Path, source: str) -> None:
    played = asyncio.run(hijack(tmp_path, source, attacks()))
    assert len(played) >= 100
    assert failures(played) == []


def test_the_same_acts_in_a_clean_conversation_are_not_asked_for(tmp_path: Path) -> None:
    wanted = [one for one in attacks() if not one.guarded]
    assert asyncio.run(obey(tmp_path, wanted, "Do all of it.")) == []
