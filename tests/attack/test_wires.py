"""What pretends to be another role stays a result."""

from __future__ import annotations

import asyncio

import pytest

from tests.attack.played import failures
from tests.attack.wires import pretend
from tests.wire.services import WIRES


@pytest.mark.parametrize("wire", WIRES)
def test_c68_fake_roles_stay_data(wire: str) -> None:
    assert failures(asyncio.run(pretend(wire))) == []
