"""The sections of the prompt, in their order. Each is a small function that gives a `Section` or None."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from limpet.config.machine import Machine
from limpet.memory.scope import OWNERS, MemoryScope
from limpet.prompt.bootstrap import Allowance, FileText, cut, cut_head, read_workspace_file
from limpet.prompt.skill_index import BUDGET, index
from limpet.prompt.templates import template, workspace_template
from limpet.skills.skill import Skill
from limpet.types.entry import Section

Mode = Literal["full", "minimal", "none"]
Tier = Literal["full", "tiny", "none"]

BOOTSTRAP_FILES = ("AGENTS.md", "SOUL.md", "USER.md", "IDENTITY.md", "TOOLS.md")
TINY_CAP = 1_600
"""Characters of workspace files and memory together in the tiny tier, so that it stays under 1,500 tokens."""

REMEMBERED = ("memory", "recent history")
"""Sections that show what is remembered."""
RECENT_CAP = 3_000
"""Characters of one day's notes that the prompt shows: their end."""
ARCHIVE_CAP, TINY_ARCHIVE = 4_000, 600
"""Characters of the last conversation's summary, in the full and in the tiny tier."""


class PromptContext(Struct, frozen=True):
    """What a prompt is made of. `workspace` is absolute; `window` is in tokens, 0 = not known.

    `conversation` is False for one-shot runs, which never see BOOTSTRAP.md. `task` is what a helper or a
    scheduled run (mode `minimal`) is there for. `memory` says whose it is: USER.md and BOOTSTRAP.md are for the owner
    alone. `days` are the names (YYYY-MM-DD) of the days whose notes are recent, the newest last; `before` is what the
    last conversation was about; `skills` are those that are offered. Caps are characters.
    """

    workspace: str
    machine: Machine
    window: int = 0
    mode: Mode = "full"
    conversation: bool = True
    name: str = "Limpet"
    task: str = ""
    memory: MemoryScope = OWNERS
    days: tuple[str, ...] = ()
    before: str = ""
    file_cap: int = 20_000
    total_cap: int = 60_000
    skills: tuple[Skill, ...] = ()
    index_cap: int = BUDGET


class Sections:
    """Collects the sections of one prompt, and what is odd about the files they are made of."""

    def __init__(self, context: PromptContext, *, tier: Tier, with_tools: bool) -> None:
        self._context = context
        self._tier: Tier = tier
        self._with_tools = with_tools
        self._allowance = Allowance(
            file_cap=context.file_cap,
            total_cap=min(context.total_cap, TINY_CAP) if tier == "tiny" else context.total_cap,
            tokens=(context.window or 1_000_000) // 4,
        )
        self.warnings: list[str] = []

    def build(self) -> tuple[Section, ...]:
        """All sections that have something to say, in their order."""
        if self._context.mode == "none" or self._tier == "none":
            return (Section("identity", self._fill("identity_none")),)
        files = [self._file_section(file) for file in self._bootstrap_files()]
        memory = self._memory() if self._context.mode == "full" else None
        skills = self._context.skills
        always = self._active_skills(skills) if self._context.mode == "full" else None
        past = (self._recent(), self._archived()) if self._context.mode == "full" else ()
        parts = (self._identity(), *files, self._contract(), memory, always, self._skills(skills), *past, self._task())
        return tuple(part for part in parts if part is not None)

    def _fill(self, name: str) -> str:
        machine = self._context.machine
        text = template(name)
        for field, value in (
            ("name", self._context.name),
            ("system", machine.system + (" (WSL)" if machine.wsl else "")),
            ("arch", machine.arch),
            ("python", machine.python),
            ("workspace", self._context.workspace),
        ):
            text = text.replace("{" + field + "}", value)
        return text

    def _identity(self) -> Section:
        if self._tier == "tiny":
            return Section("identity", self._fill("identity_tiny"))
        machine = self._context.machine
        policy = [{"macOS": "platform_macos", "Windows": "platform_windows"}.get(machine.system, "")]
        policy.append("platform_container" if machine.container else "")
        return Section("identity", "\n\n".join([self._fill("identity"), *(template(name) for name in policy if name)]))

    def _bootstrap_files(self) -> Iterator[FileText]:
        names = BOOTSTRAP_FILES if self._context.mode == "full" else BOOTSTRAP_FILES[:1]
        if self._context.memory.name:
            names = tuple(name for name in names if name != "USER.md")
        elif self._context.conversation and self._context.mode == "full" and self._tier == "full":
            names = (*names, "BOOTSTRAP.md")
        for name in names:
            yield self._read(name)

    def _read(self, name: str) -> FileText:
        file = read_workspace_file(self._context.workspace, name)
        if file.warning:
            self.warnings.append(file.warning)
        return file

    def _file_section(self, file: FileText) -> Section:
        """A missing file makes a section without text: its absence is part of the fingerprint."""
        text = file.text
        if self._tier == "tiny" and text == workspace_template(file.name):
            text = ""
        if text:
            text = f"## {file.name.removesuffix('.md')}\n\n{self._allowance.take(text, file.name)}"
        return Section(file.name, text, sources=((file.name, file.sha256),))

    def _contract(self) -> Section | None:
        if not self._with_tools:
            return None
        return Section("tool contract", template("tool_contract_tiny" if self._tier == "tiny" else "tool_contract"))

    def _memory(self) -> Section:
        texts: list[str] = []
        sources: list[tuple[str, str]] = []
        seen: set[str] = set()
        for name in self._context.memory.lasting:
            file = self._read(name)
            sources.append((name, file.sha256))
            same = self._identical(name, seen)
            if file.text and not same and file.text != workspace_template("MEMORY.md"):
                texts.append(self._allowance.take(file.text, name))
        text = "\n\n".join(["# Memory", *texts]) if texts else ""
        return Section("memory", text, sources=tuple(sources))

    def _identical(self, name: str, seen: set[str]) -> bool:
        """Whether `name` is a file that was seen already: `memory.md` is `MEMORY.md` where case does not matter."""
        try:
            status = os.stat(os.path.join(self._context.workspace, name))
        except OSError:
            return False
        identity = f"{status.st_dev}:{status.st_ino}"
        known = identity in seen
        seen.add(identity)
        return known

    def _active_skills(self, skills: tuple[Skill, ...]) -> Section | None:
        active = [skill for skill in skills if skill.front.always and not skill.missing]
        if not active or self._tier == "tiny":
            return None
        parts = [
            f"### Skill: {skill.name}\n\n{self._allowance.take(skill.instructions, skill.location)}" for skill in active
        ]
        sources = tuple((skill.location, skill.sha256) for skill in active)
        return Section("active skills", "\n\n".join(["# Active Skills", *parts]), sources=sources)

    def _skills(self, skills: tuple[Skill, ...]) -> Section | None:
        if self._tier == "tiny":  # no room for what nobody has chosen
            skills = tuple(skill for skill in skills if skill.origin != "bundled")
        text = index(skills, budget=self._context.index_cap) if self._with_tools else ""
        if not text:
            return None
        head = "# Skills\n\nBefore a task that a skill describes, read its file and do as it says."
        if any(skill.ungranted for skill in skills):
            head += " What is not granted is refused; the owner grants it with `limpet skills grant NAME`."
        sources = tuple((skill.location, skill.sha256) for skill in skills)
        return Section("skills", f"{head}\n\n{self._allowance.take(text, 'skills')}", sources=sources)

    def _recent(self) -> Section | None:
        """The newest notes of the last days. They are no source: what is added to them meanwhile is known already."""
        if self._tier == "tiny":
            return None
        parts: list[str] = []
        for day in self._context.days:
            name = f"{self._context.memory.folder}/{day}.md"
            if text := self._read(name).text:
                parts.append(f"## {name}\n\n{self._allowance.take(cut_head(text, RECENT_CAP, name), name)}")
        return Section("recent history", "\n\n".join(["# Recent notes", *parts])) if parts else None

    def _archived(self) -> Section | None:
        if not self._context.before:
            return None
        text = cut(self._context.before, TINY_ARCHIVE if self._tier == "tiny" else ARCHIVE_CAP, "this summary")
        return Section("archived summary", f"# The conversation before this one\n\n{text}")

    def _task(self) -> Section | None:
        return Section("task", f"# Task\n\n{self._context.task}") if self._context.task else None
