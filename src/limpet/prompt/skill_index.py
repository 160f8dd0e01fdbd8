"""The index of skills as the model sees it. Bodies are read on demand, except of skills marked `always`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from limpet.skills.skill import FILE, Skill

BUDGET = 8_000
"""Characters of the whole index."""
_FULL, _SHORT = 500, 80
"""Characters of one description, and of one where there is no room."""
SHORTENED = "Descriptions are shortened: there are many skills. Read the file of one that may fit."
NAMES_ONLY = "There are many skills, so only their names stand here. Read the file of one that may fit."


def index(skills: Sequence[Skill], *, budget: int = BUDGET) -> str:
    """The index of the skills that the model may call by itself, in at most `budget` characters.

    Where that is too little, descriptions get shorter, then names alone are left, then the last names are left out;
    the index says so itself.
    """
    listed = [skill for skill in skills if skill.front.listed]
    if not listed:
        return ""
    base = _base(listed)
    shapes: tuple[tuple[str, Callable[[Skill], str]], ...] = (
        ("", lambda skill: _entry(skill, _FULL, base)),
        (SHORTENED, lambda skill: _entry(skill, _SHORT, base)),
        (NAMES_ONLY, lambda skill: _name(skill, base)),
    )
    lines: list[str] = []
    note = ""
    for note, shape in shapes:
        lines = [shape(skill) for skill in listed]
        text = _framed(lines, note, base)
        if len(text) <= budget:
            return text
    for kept in range(len(lines) - 1, 0, -1):
        text = _framed(lines[:kept], f"{note} {len(lines) - kept} more are not named.", base)
        if len(text) <= budget:
            return text
    return ""


def _framed(lines: list[str], note: str, base: str) -> str:
    head = f"<skills files={_quoted(f'{base}/NAME/{FILE}')}>" if base else "<skills>"
    return "\n".join([head, *lines, "</skills>", *([note] if note else [])])


def _base(skills: Sequence[Skill]) -> str:
    """The folder in which most of the skills lie, each in a folder of its name; empty when none does."""
    ends = [(skill.location, f"/{skill.name}/{FILE}") for skill in skills]
    folders = Counter(location.removesuffix(end) for location, end in ends if location.endswith(end))
    return folders.most_common(1)[0][0] if folders else ""


def _entry(skill: Skill, longest: int, base: str) -> str:
    about = skill.description if len(skill.description) <= longest else f"{skill.description[: longest - 1].rstrip()}…"
    lacks = f" lacks={_quoted(', '.join(skill.missing))}" if skill.missing else ""
    grant = f" not-granted={_quoted(skill.front.needs.told())}" if skill.ungranted else ""
    return f"<skill{_named(skill, base)}{lacks}{grant}>{escape(about)}</skill>"


def _name(skill: Skill, base: str) -> str:
    return f"<skill{_named(skill, base)}/>"


def _named(skill: Skill, base: str) -> str:
    elsewhere = skill.location != f"{base}/{skill.name}/{FILE}"
    return f" name={_quoted(skill.name)}" + (f" file={_quoted(skill.location)}" if elsewhere else "")


def _quoted(text: str) -> str:
    return '"' + escape(text).replace('"', "&quot;") + '"'


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
