"""The skills of one process: which there are, which are offered, and why the others are not.

They are looked for once and again whenever a prompt is made, so that a change counts from the next session on, or after
`/reload`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from msgspec import Struct, structs

from limpet.errors import InputError
from limpet.skills.discovery import Found, Place, discover, is_below
from limpet.skills.fronts import Fronts
from limpet.skills.gates import Situation, missing
from limpet.skills.records import Granted, Records, digest_of, drift, files_of, load
from limpet.skills.scan import scan
from limpet.skills.skill import Needs, Skill

CACHE = "skills-read.json"
UNRECORDED = "Look at it; then move it to the skills of the workspace, or install it from another folder"
_LATIN = re.compile(r"[\w-]+", re.ASCII)


class Shelf:
    """Looks for skills in `where`, with the records and the cache of `home`."""

    def __init__(
        self,
        where: Sequence[Place],
        home: Path,
        *,
        workspace: str,
        here: Situation,
        disabled: Collection[str] = (),
    ) -> None:
        self.disabled = frozenset(disabled)
        self._where = where
        self._home = home
        self._workspace = workspace
        self._here = here
        self._fronts = Fronts(home / CACHE)
        self._state: _State | None = None
        self._usable: tuple[Skill, ...] | None = None

    def refresh(self) -> None:
        """Look anew at what there is."""
        self._state, self._usable = self._look(), None

    @property
    def found(self) -> Found:
        """All skills there are, offered or not."""
        return self._now.found

    @property
    def offered(self) -> tuple[Skill, ...]:
        """The skills that are not held back, with what they lack. Bundled ones that cannot be used here are left out:
        nobody has chosen them."""
        if self._usable is None:
            skills = [structs.replace(one, missing=self.lacks(one)) for one in self._now.skills]
            self._usable = tuple(one for one in skills if one.origin != "bundled" or not one.missing)
        return self._usable

    @property
    def held(self) -> dict[str, str]:
        """Why a skill is held back, by name."""
        return self._now.held

    @property
    def granted(self) -> tuple[tuple[str, Needs], ...]:
        """What the owner granted to skills that are as they were then, by name."""
        return self._now.granted

    def warnings(self) -> list[str]:
        """What the owner should know at the start, a line each."""
        return [f"The skill {name} is not offered: {why}" for name, why in self.held.items()]

    def folders(self) -> tuple[str, ...]:
        """The folders of the offered skills outside the workspace: readable, never written."""
        ours = (os.path.realpath(self._workspace), os.path.realpath(self._home))
        return tuple(
            one.folder
            for one in self.offered
            if one.origin not in ("workspace", "agents") and not any(is_below(path, one.folder) for path in ours)
        )

    def lacks(self, skill: Skill) -> tuple[str, ...]:
        """What a skill needs and this machine has not."""
        return missing(skill.front.gates, self._here)

    def state(self, one: Skill) -> str:
        """Whether a skill is offered, in words, or why it is not."""
        if one.name in self.held:
            return f"held back, {self.held[one.name]}"
        if one.name in self.disabled:
            return "disabled (skills.disabled)"
        lacks = self.lacks(one)
        if lacks:
            return f"lacks {', '.join(lacks)}"
        offered = next((skill for skill in self.offered if skill.name == one.name), one)
        return f"not granted: {one.front.needs.told()}" if offered.ungranted else "offered"

    def callable(self) -> tuple[Skill, ...]:
        """The offered skills that people may call."""
        return tuple(one for one in self.offered if one.front.invocable)

    def named(self, name: str) -> Skill | None:
        """The offered skill that people may call by `name`, or by its command."""
        wanted = name.lower().replace("-", "_")
        return next((one for one in self.callable() if one.command == wanted), None)

    def hints(self, text: str) -> list[str]:
        """A line for each usable skill whose trigger words stand in `text`."""
        plain = text.casefold()
        words = set(_LATIN.findall(plain))
        return [
            f"The skill {one.name} is for such messages; its file: {one.location}"
            for one in self.offered
            if one.front.listed and not one.missing and any(_stands(word, plain, words) for word in one.front.triggers)
        ]

    @property
    def _now(self) -> _State:
        if self._state is None:
            self._state = self._look()
        return self._state

    def _look(self) -> _State:
        found = discover(self._where, self._fronts, workspace=self._workspace)
        try:
            records = load(self._home)
        except InputError as error:
            installed = {one.name: str(error) for one in found.skills if one.origin == "home"}
            return _State(found, tuple(one for one in found.skills if one.name not in installed), installed, ())
        held = _held(found, records)
        granted: list[tuple[str, Needs]] = []
        skills: list[Skill] = []
        for skill in found.skills:
            if skill.name in held or skill.name in self.disabled:
                continue
            grant = records.granted.get(skill.name) if skill.front.needs else None
            holds = grant is not None and is_same(skill, grant)
            granted += [(skill.name, grant.needs)] if grant is not None and holds else []
            skills.append(structs.replace(skill, ungranted=bool(skill.front.needs) and not holds))
        return _State(found, tuple(skills), held, tuple(granted))


class _State(Struct, frozen=True):
    found: Found
    skills: tuple[Skill, ...]
    held: dict[str, str]
    granted: tuple[tuple[str, Needs], ...]


def is_same(skill: Skill, grant: Granted) -> bool:
    """Whether the files of the skill are those that were granted."""
    try:
        return digest_of(files_of(skill.folder)) == grant.digest and skill.front.needs == grant.needs
    except OSError:
        return False


def _held(found: Found, records: Records) -> dict[str, str]:
    """Installed skills in quarantine, or whose files are not those that were installed; and of those in the home that
    nobody has installed, or whose record is gone, the dangerous ones."""
    folders = {os.path.realpath(one.folder): one for one in records.installed.values()}
    held: dict[str, str] = {}
    for skill in found.skills:
        known = folders.get(skill.folder)
        if known is None:
            if skill.origin == "home" and (worst := next((f for f in scan(skill.folder) if f.level == "danger"), None)):
                held[skill.name] = f"there is no record of its installation, and {worst}. {UNRECORDED}"
            continue
        if known.quarantine:
            held[skill.name] = f"in quarantine: {known.quarantine}. See: limpet skills info {skill.name}"
        elif changes := changes_of(skill.folder, known.files):
            shown = ", ".join(changes[:3]) + (f" and {len(changes) - 3} more" if len(changes) > 3 else "")
            held[skill.name] = f"its files are not those that were installed ({shown}). See: limpet skills check"
    return held


def changes_of(folder: str, files: dict[str, str]) -> list[str]:
    """What is otherwise in `folder` than `files` say."""
    try:
        return drift(files, files_of(folder))
    except OSError as error:
        return [f"unreadable: {error.strerror}"]


def _stands(trigger: str, text: str, words: set[str]) -> bool:
    """Whether a trigger stands in a text: Latin words whole, others and several words anywhere."""
    wanted = trigger.casefold().strip()
    return wanted in words if _LATIN.fullmatch(wanted) else wanted in text
