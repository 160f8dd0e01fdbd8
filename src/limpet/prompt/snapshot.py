"""The snapshot of a prompt: built once for a session, then compared with the files it was made of."""

from __future__ import annotations

import os
from collections.abc import Iterable

from msgspec import Struct

from limpet.errors import NoModelError
from limpet.llm.tokens import estimate
from limpet.prompt.bootstrap import FileText, WorkspaceFiles, cut
from limpet.prompt.sections import BOOTSTRAP_FILES, PromptContext, Sections, Tier
from limpet.types.entry import Note, PromptEntry
from limpet.types.tool import ToolSpec

FULL_FROM = 16_000
"""Windows below this get the tiny tier."""
LEAST_ROOM = 1_000
"""Tokens that a message, its answer and one tool result need at the least."""
NOTE_CAP = 8_000
"""Characters of a changed file that a note carries."""
ORIGIN = "file:"


class Built(Struct, frozen=True):
    """A prompt, ready to be logged, and what the owner should know about the files it was made of."""

    entry: PromptEntry
    warnings: tuple[str, ...] = ()


def tokens_of(entry: PromptEntry) -> int:
    """Estimated tokens of system prompt and tools."""
    tools = "".join(spec.name + spec.description + bytes(spec.parameters).decode() for spec in entry.tools)
    return estimate(entry.system) + estimate(tools)


def tier_for(window: int) -> Tier:
    """The tier for a window of so many tokens; a window that is not known counts as large."""
    return "tiny" if 0 < window < FULL_FROM else "full"


def build(
    context: PromptContext, tools: tuple[ToolSpec, ...], *, model: str = "", reason: str = "new session"
) -> Built:
    """The prompt for a session. `tools` go in as they are: their order and wording are the caller's.

    Raises `NoModelError` when the window is too small even for the tiny tier.
    """
    tier: Tier = "none" if context.mode == "none" else tier_for(context.window)
    sections = Sections(context, tier=tier, with_tools=bool(tools))
    entry = PromptEntry(
        sections=sections.build(), tools=tools, tier=tier, mode=context.mode, model=model, reason=reason
    )
    needed = tokens_of(entry) + max(LEAST_ROOM, context.window // 4)
    if 0 < context.window < needed:
        raise NoModelError(
            f"The model's window of {context.window:,} tokens is too small: instructions and tools alone need about "
            f"{tokens_of(entry):,}, and a conversation needs room beside them.",
            hint="Raise the window in the model server (Ollama: OLLAMA_CONTEXT_LENGTH=8192), or choose another model.",
        )
    return Built(entry, tuple(sections.warnings))


def rebuild_reason(entry: PromptEntry, workspace: str) -> str:
    """Why the snapshot must be built anew before the next request; empty when it need not be."""
    shown = any(section.name == "BOOTSTRAP.md" and section.text for section in entry.sections)
    return "BOOTSTRAP.md is gone" if shown and not os.path.lexists(os.path.join(workspace, "BOOTSTRAP.md")) else ""


def changed(entry: PromptEntry, workspace: WorkspaceFiles, *, told: Iterable[Note] = ()) -> list[Note]:
    """Notes on workspace files that read otherwise than in the snapshot and than in the notes already `told`."""
    known = {name: sha for section in entry.sections for name, sha in section.sources}
    for note in told:
        if note.origin.startswith(ORIGIN):
            name, _, sha = note.origin.removeprefix(ORIGIN).rpartition(":")
            known[name] = sha
    memory = [name for name in known if name.rpartition("/")[2].casefold() == "memory.md"]
    watched = [*(name for name in BOOTSTRAP_FILES if name in known), *memory]
    files = [workspace.read(name) for name in watched]
    return [_note(file) for file in files if file.sha256 != known[file.name]]


def _note(file: FileText) -> Note:
    if file.text:
        text = f"{file.name} now reads:\n\n{cut(file.text, NOTE_CAP, file.name)}"
    else:
        text = f"{file.name} is {'empty' if file.sha256 else 'gone'} now; what it said no longer counts."
    return Note(text=text, origin=f"{ORIGIN}{file.name}:{file.sha256}")
