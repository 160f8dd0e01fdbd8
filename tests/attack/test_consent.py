"""A yes counts for what was shown, said once, by the owner."""

from __future__ import annotations

from pathlib import Path

from tests.attack.consent import consent
from tests.attack.played import failures


def test_no_yes_is_stolen(tmp_path: Path) -> None:
    assert failures(consent(tmp_path)) == []
