"""What goes into a prompt, in which order, and how much of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec import Raw
from msgspec.structs import replace

from limpet.config.machine import Machine
from limpet.errors import NoModelError
from limpet.prompt.sections import PromptContext
from limpet.prompt.snapshot import build, tokens_of
from limpet.prompt.templates import WORKSPACE_FILES, seed_workspace
from limpet.types.tool import ToolSpec

MACHINE = Machine(system="Linux", arch="x86_64", release="6.1", python="3.12.1")
TOOLS = (ToolSpec(name="read_file", description="Reads a file.", parameters=Raw(b'{"type":"object"}')),)


def context(workspace: Path, **changes: object) -> PromptContext:
    return replace(PromptContext(workspace=str(workspace), machine=MACHINE), **changes)


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    seed_workspace(str(tmp_path), bootstrap=True)
    return tmp_path


def names(built_for: PromptContext) -> list[str]:
    return [section.name for section in build(built_for, TOOLS).entry.sections if section.text]


def test_sections_stand_in_their_order(fresh: Path) -> None:
    (fresh / "MEMORY.md").write_text("- likes tea\n")
    files = ["AGENTS.md", "SOUL.md", "USER.md", "IDENTITY.md", "TOOLS.md", "BOOTSTRAP.md"]
    assert names(context(fresh)) == ["identity", *files, "tool contract", "memory"]
    assert build(context(fresh), TOOLS).entry.system.count("\n\n---\n\n") == 8


def test_the_modes_leave_out_what_they_should(fresh: Path) -> None:
    task = "Water the plants."
    assert names(context(fresh, mode="minimal", task=task)) == ["identity", "AGENTS.md", "tool contract", "task"]
    assert names(context(fresh, mode="none")) == ["identity"]
    assert "BOOTSTRAP.md" not in names(context(fresh, conversation=False))


def test_identity_says_where_and_on_what(fresh: Path) -> None:
    machine = replace(MACHINE, system="macOS", container=True)
    text = build(context(fresh, machine=machine), TOOLS).entry.sections[0].text
    for words in (str(fresh), "macOS", "x86_64", "Python 3.12.1", "MEMORY.md", "BSD", "container"):
        assert words in text
    assert "{" not in text


def test_a_missing_file_is_skipped_and_an_empty_workspace_is_fine(tmp_path: Path) -> None:
    built = build(context(tmp_path), TOOLS)
    assert names(context(tmp_path)) == ["identity", "tool contract"]
    assert not built.warnings
    assert names(context(tmp_path / "nowhere")) == ["identity", "tool contract"]


def test_caps_hold_for_one_file_and_for_all(fresh: Path) -> None:
    for name in ("AGENTS", "SOUL", "USER", "TOOLS"):
        (fresh / f"{name}.md").write_text("a line of text\n" * 3000)
    texts = {s.name: s.text for s in build(context(fresh, conversation=False), TOOLS).entry.sections}
    assert len(texts["AGENTS.md"]) <= 20_020
    assert "[AGENTS.md is cut here: 44,999 characters" in texts["AGENTS.md"]
    assert sum(len(texts[name]) for name in texts if name.endswith(".md")) < 60_500


@pytest.mark.parametrize("character", ["a line of text\n", "漢字かな交じり文\n"])
def test_files_take_a_quarter_of_the_window_at_most(fresh: Path, character: str) -> None:
    (fresh / "AGENTS.md").write_text(character * 5000)
    plain = tokens_of(build(context(fresh / "empty", window=20_000), TOOLS).entry)
    assert tokens_of(build(context(fresh, window=20_000), TOOLS).entry) - plain <= 5_400


def test_odd_bytes_are_replaced_with_a_warning(fresh: Path) -> None:
    (fresh / "SOUL.md").write_bytes(b"calm \xff\xfe and \x00 warm\n")
    built = build(context(fresh), TOOLS)
    assert "calm \ufffd\ufffd and \ufffd warm" in built.entry.system
    assert built.warnings == ("SOUL.md is not clean UTF-8; the odd bytes were replaced.",)


def test_what_is_no_file_of_the_workspace_is_left_out_with_a_warning(
    fresh: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    secret = tmp_path_factory.mktemp("outside") / "secret"
    secret.write_text("hunter2")
    for name in ("SOUL.md", "USER.md", "TOOLS.md"):
        (fresh / name).unlink()
    (fresh / "SOUL.md").symlink_to(secret)
    (fresh / "USER.md").mkdir()
    (fresh / "IDENTITY.md").unlink()
    os.mkfifo(fresh / "IDENTITY.md")
    (fresh / "TOOLS.md").symlink_to(fresh / "nowhere")
    built = build(context(fresh), TOOLS)
    assert "hunter2" not in built.entry.system
    assert len(built.warnings) == 3


def test_memory_is_read_where_people_keep_it(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "MEMORY.md").write_text("- one")
    (tmp_path / "memory.md").write_text("- two")
    text = build(context(tmp_path), TOOLS).entry.sections[-1].text
    assert text == "# Memory\n\n- one\n\n- two"


def test_the_first_request_is_small(fresh: Path) -> None:
    assert len(build(context(fresh), TOOLS).entry.system.encode()) <= 8_000


def test_the_tiny_tier_is_small_whatever_the_files_say(fresh: Path) -> None:
    entry = build(context(fresh, window=8192), TOOLS).entry
    assert entry.tier == "tiny"
    assert len(entry.system.encode()) <= 1_200
    for name in WORKSPACE_FILES:
        (fresh / name).write_text("my own words\n" * 2000)
    assert len(build(context(fresh, window=8192), TOOLS).entry.system.encode()) <= 3_300


def test_a_window_that_is_too_small_is_refused_with_the_reason(fresh: Path) -> None:
    with pytest.raises(NoModelError, match="window of 512 tokens is too small"):
        build(context(fresh, window=512), TOOLS)
    assert build(context(fresh, window=4096), TOOLS).entry.tier == "tiny"


def test_the_prompt_of_the_embedded_model_is_under_300_tokens(fresh: Path) -> None:
    entry = build(context(fresh, mode="none", window=8192), ()).entry
    assert tokens_of(entry) < 100
    assert entry.tier == "none"
