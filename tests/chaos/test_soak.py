"""A soak: many messages through one gateway, and what it holds more of afterwards. `LIMPET_SOAK` is how many."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MESSAGES = int(os.environ.get("LIMPET_SOAK", "1500"))
GROWTH = 10_000_000
"""Bytes (the goal of 10,000 messages)."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(MESSAGES // 5 + 300)]


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_nothing_grows() -> None:
    command = [sys.executable, "-m", "bench.soak", str(MESSAGES)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    print(f"{found['turns']} answers: {found['grown']}")
    assert found["turns"] >= MESSAGES * 0.9
    assert found["grown"]["bytes"] < GROWTH
    # Connections to the model and turns come and go; what leaked at each message would be a thousand.
    assert found["grown"]["files"] <= 80
    assert found["grown"]["tasks"] <= 200
