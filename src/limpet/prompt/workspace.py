"""The prompt of a workspace: its snapshot, what changed since, and the runtime block of a message."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta

from msgspec import Struct, structs

from limpet.config import schema
from limpet.config.machine import this_machine
from limpet.memory.scope import OWNERS, MemoryScope
from limpet.prompt.bootstrap import WorkspaceFiles
from limpet.prompt.folders import folder_notes
from limpet.prompt.runtime import local_moment, runtime_block
from limpet.prompt.sections import REMEMBERED, Mode, PromptContext, Sections
from limpet.prompt.snapshot import build, changed, rebuild_reason, tier_for
from limpet.prompt.templates import template
from limpet.session.keys import kind_of
from limpet.skills.shelf import Shelf
from limpet.types.entry import Note, PromptEntry
from limpet.types.envelope import InboxRow
from limpet.types.event import Notice
from limpet.types.ports import Clock, Emit, Redactor
from limpet.types.profile import Profile
from limpet.types.tool import ToolSpec


def _no_task(key: str) -> str:
    """Conversations with people have none."""
    return ""


class Beside(Struct, frozen=True):
    """What prompts show besides the workspace's own files: whose memory the conversations under a session key have,
    the skills, what a key is there for alone (`task`), and which tools it is not to have (key, name)."""

    scope: Callable[[str], MemoryScope] = lambda key: OWNERS
    skills: Shelf | None = None
    task: Callable[[str], str] = _no_task
    withheld: Callable[[str, str], bool] = lambda key, tool: False


ALONE = Beside()
_NO_CHATS = ("cli", "helper", "hook")
_TASKS = {"cron": "task_job", "hook": "task_hook"}
"""Templates of the task by the kind of session that works by itself."""


class WorkspacePrompting:
    """What the assistant asks about prompts (`Prompting`), over the files of a workspace."""

    def __init__(
        self,
        workspace: str,
        settings: schema.Settings,
        *,
        tools: Callable[[Profile], tuple[ToolSpec, ...]],
        redactor: Redactor,
        clock: Clock,
        conversation: bool,
        emit: Emit,
        beside: Beside = ALONE,
    ) -> None:
        """`tools` gives what a model is told of them; `conversation` is False for one-shot runs (no BOOTSTRAP)."""
        self._scope = beside.scope
        self._workspace = workspace
        self._files = WorkspaceFiles(workspace)
        self._settings = settings
        self._conversation = conversation
        self._emit = emit
        self._redact = redactor.redact
        self._clock = clock
        self._tools = tools
        self._skills = beside.skills
        self._beside = beside

    def snapshot(self, profile: Profile, *, reason: str, before: str = "", key: str = "") -> PromptEntry:
        if self._skills is not None:
            self._skills.refresh()
        context = structs.replace(
            self._context(profile, key),
            before=before,
            skills=self._skills.offered if self._skills is not None else (),
            index_cap=self._settings.skills.index_chars,
        )
        tools = tuple(one for one in self._tools(profile) if not self._beside.withheld(key, one.name))
        built = build(context, tools, model=profile.reference, reason=reason)
        for warning in built.warnings:
            self._emit(Notice(warning, level="warning"))
        sections = tuple(structs.replace(section, text=self._redact(section.text)) for section in built.entry.sections)
        return structs.replace(built.entry, sections=sections)

    def memory(self, profile: Profile, *, key: str = "") -> str:
        sections = Sections(self._context(profile, key), tier=tier_for(profile.window), with_tools=True).build()
        return self._redact("\n".join(one.text for one in sections if one.name in REMEMBERED))

    def _context(self, profile: Profile, key: str) -> PromptContext:
        """What a prompt is made of besides skills."""
        task = self._beside.task(key) or (template(_TASKS[kind_of(key)]) if kind_of(key) in _TASKS else "")
        mode: Mode = "minimal" if task else "full"
        today = local_moment(self._clock.now(), self._settings.user.timezone).date()
        return PromptContext(
            workspace=self._workspace,
            machine=this_machine(os.environ),
            window=profile.window,
            mode=mode if profile.tools else "none",
            task=task,
            conversation=self._conversation,
            memory=self._scope(key),
            days=(f"{today - timedelta(days=1)}", f"{today}"),
            file_cap=self._settings.prompt.file_cap,
            total_cap=self._settings.prompt.total_cap,
        )

    def changes(self, snapshot: PromptEntry, told: Sequence[Note]) -> list[Note]:
        notes = changed(snapshot, self._files, told=told)
        return [structs.replace(note, text=self._redact(note.text)) for note in notes]

    def folders(self, paths: Iterable[str], told: Sequence[Note]) -> list[Note]:
        notes = folder_notes(self._files, self._workspace, paths, told=told)
        return [structs.replace(note, text=self._redact(note.text)) for note in notes]

    def stale(self, snapshot: PromptEntry) -> str:
        return rebuild_reason(snapshot, self._workspace)

    def runtime(self, row: InboxRow, facts: Sequence[str] = ()) -> str:
        inbound, address = row.inbound, row.inbound.address
        hints = self._skills.hints(row.inbound.text) if self._skills is not None else ()
        return runtime_block(
            self._clock.now(),
            self._settings.user.timezone,
            channel=address.channel,
            chat="" if address.channel in _NO_CHATS else (inbound.group or address.chat),
            sender=f"{inbound.name} ({inbound.sender})" if inbound.name else inbound.sender,
            facts=(*facts, *hints),
        )
