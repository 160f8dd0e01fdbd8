"""No byte outside the roots is read or written."""

from __future__ import annotations

from pathlib import Path

from tests.attack.paths import probe, swaps
from tests.attack.played import failures


def test_no_path_leads_out(tmp_path: Path) -> None:
    played = probe(tmp_path)
    assert len(played) >= 700
    assert failures(played) == []


def test_no_swap_under_way_leads_out(tmp_path: Path) -> None:
    assert failures(swaps(tmp_path, rounds=40)) == []
