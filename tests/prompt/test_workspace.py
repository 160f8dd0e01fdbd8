"""The prompt of a workspace: what it shows of memory is known before it is made."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec import structs

from limpet.config.schema import Settings
from limpet.llm.profiles import profile_of
from limpet.prompt.workspace import WorkspacePrompting
from limpet.testing.clock import FakeClock
from tests.assistant.room import NoSecrets


@pytest.mark.parametrize("window", [0, 8_000])
def test_what_it_shows_of_memory_is_what_the_snapshot_shows(tmp_path: Path, window: int) -> None:
    clock = FakeClock()
    today = datetime.fromtimestamp(clock.now() / 1_000, UTC).date()
    (tmp_path / "memory").mkdir()
    (tmp_path / "MEMORY.md").write_text("- Likes tea\n" * 300)
    (tmp_path / f"memory/{today}.md").write_text("- Bought a zeppelin\n" * 500)
    (tmp_path / f"memory/{today - timedelta(days=9)}.md").write_text("- Sold a boat\n")
    prompting = WorkspacePrompting(
        str(tmp_path),
        Settings(),
        tools=lambda profile: (),
        redactor=NoSecrets(),
        clock=clock,
        conversation=True,
        emit=lambda event: None,
    )
    profile = structs.replace(profile_of("openai", "m"), window=window)
    shown = prompting.memory(profile)
    system = prompting.snapshot(profile, reason="new session").system
    assert all(part in system for part in shown.split("\n"))
    assert ("zeppelin" in shown) is ("zeppelin" in system) is (window == 0)
    assert "Likes tea" in shown
    assert "boat" not in shown
