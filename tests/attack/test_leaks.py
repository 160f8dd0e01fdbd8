"""No tool says a configured secret, in no form."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from limpet.sandbox.run import Sandbox
from tests.attack.leaks import leak
from tests.attack.played import failures


@pytest.mark.skipif(Sandbox().report.kind == "none", reason="no sandbox")
def test_c65_no_form_of_a_secret_comes_back(tmp_path: Path) -> None:
    assert failures(asyncio.run(leak(tmp_path))) == []
