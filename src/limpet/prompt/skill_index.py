"""The index of skills as the model sees it. Bodies are read on demand, except of skills marked `always`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from limpet.skills.skill import Skill

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
    shapes: tuple[tuple[str, Callable[[Skill], str]], ...] = (
        ("", lambda skill: _entry(skill, _FULL)),
        (SHORTENED, lambda skill: _entry(skill, _SHORT)),
        (NAMES_ONLY, _name),
    )
    lines: list[str] = []
    note = ""
    for note, shape in shapes:
        lines = [shape(skill) for skill in listed]
        text = _framed(lines, note)
        if len(text) <= budget:
            return text
    for kept in range(len(lines) - 1, 0, -1):
        text = _framed(lines[:kept], f"{note} {len(lines) - kept} more are not named.")
        if len(text) <= budget:
            return text
    return ""


def _framed(lines: list[str], note: str) -> str:
    return "\n".join(["<skills>", *lines, "</skills>", *([note] if note else [])])


def _entry(skill: Skill, longest: int) -> str:
    about = skill.description if len(skill.description) <= longest else f"{skill.description[: longest - 1].rstrip()}…"
    requires = f"<requires>{escape(', '.join(skill.missing))}</requires>" if skill.missing else ""
    grant = f"<not-granted>{escape(skill.front.needs.told())}</not-granted>" if skill.ungranted else ""
    return (
        f'<skill available="{"false" if skill.missing else "true"}"><name>{escape(skill.name)}</name>'
        f"<description>{escape(about)}</description>"
        f"<location>{escape(skill.location)}</location>{requires}{grant}</skill>"
    )


def _name(skill: Skill) -> str:
    return f"<skill><name>{escape(skill.name)}</name><location>{escape(skill.location)}</location></skill>"


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
