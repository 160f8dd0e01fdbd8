"""Concrete inputs of the field on sessions and context: one test for each case, as far as its parts exist."""

from __future__ import annotations

from pathlib import Path

from limpet.config.machine import Machine
from limpet.prompt.bootstrap import WorkspaceFiles
from limpet.prompt.runtime import runtime_block
from limpet.prompt.sections import PromptContext
from limpet.prompt.snapshot import build, changed
from limpet.prompt.templates import seed_workspace

MACHINE = Machine(system="Linux", arch="x86_64", release="6.1", python="3.12.1")
TEN_O_CLOCK = 1_788_256_859_000  # 2026-09-01 10:00:59 Europe/London


def test_c24_nothing_that_varies_is_in_the_prefix(tmp_path: Path) -> None:
    """The prompt's part of C24: the snapshot is equal to the byte, the time is only in the runtime block."""
    seed_workspace(str(tmp_path), bootstrap=False)
    context = PromptContext(workspace=str(tmp_path), machine=MACHINE)
    first = build(context, ()).entry
    blocks = [runtime_block(TEN_O_CLOCK + later, "Europe/London") for later in (0, 2_000, 50_400_000)]
    assert build(context, ()).entry.system == first.system
    assert len(set(blocks)) == 3
    assert not any(word in first.system for word in ("10:00", "2026", "Tuesday", "Wednesday"))

    (tmp_path / "MEMORY.md").write_text("- likes tea\n")
    (note,) = changed(first, WorkspaceFiles(str(tmp_path)))
    assert "likes tea" not in first.system
    assert "likes tea" in note.text
