from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own for the commands, in an environment without settings and keys."""
    for name in list(os.environ):
        if name.startswith("LIMPET_") or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    root = tmp_path / "home"
    monkeypatch.setenv("LIMPET_HOME", str(root))
    return root
