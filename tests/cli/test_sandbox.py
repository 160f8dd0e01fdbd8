"""`limpet sandbox test` prints a verdict on each claim."""

from __future__ import annotations

import json
from pathlib import Path

from limpet.sandbox.run import Sandbox
from tests.cli.program import run

REPORT = Sandbox().report


def test_it_tries_every_claim_and_says_so(tmp_path: Path) -> None:
    ended = run(tmp_path, "sandbox", "test", "--json")
    found = json.loads(ended.out)
    assert {one["claim"] for one in found["claims"]} > {"there is no network", "an allow-list admits only its hosts"}
    if REPORT.kind == "none":
        assert (ended.code, found["tried"]) == (1, 1)
    else:
        assert [one for one in found["claims"] if one["state"] != "holds"] == []
        assert ended.code == 0


def test_the_profile_for_macos_is_printed(tmp_path: Path) -> None:
    assert run(tmp_path, "sandbox", "seatbelt").out.startswith("(version 1)\n(deny default)\n")
