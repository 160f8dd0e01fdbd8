"""The index of skills: what the agent may look up. Bodies are read on demand, except of skills marked `always`."""

from __future__ import annotations

import os
import shutil
from typing import TypeGuard

from msgspec import Struct

from limpet.prompt.bootstrap import FileText, read_workspace_file

LONGEST_HEAD = 10_000
"""Characters of front matter; more is not front matter."""


class Skill(Struct, frozen=True):
    """One `skills/<folder>/SKILL.md`. `missing` are the programs and variables it needs and this machine lacks."""

    name: str
    description: str
    location: str
    body: str
    file: FileText
    always: bool = False
    missing: tuple[str, ...] = ()


def find_skills(workspace: str) -> list[Skill]:
    """The skills of the workspace, by folder name."""
    try:
        with os.scandir(os.path.join(workspace, "skills")) as found:
            folders = sorted(item.name for item in found if item.is_dir() and not item.name.startswith("."))
    except OSError:
        return []
    files = [read_workspace_file(workspace, f"skills/{folder}/SKILL.md") for folder in folders]
    return [read_skill(file) for file in files if file.sha256]


def read_skill(file: FileText) -> Skill:
    """The skill that `file` describes; where its front matter is missing or broken, as much as can be had."""
    head, body = split_front_matter(file.text)
    fields = parse_front_matter(head)
    folder = file.name.split("/")[-2]
    first_line = next((line.strip("# ").strip() for line in body.splitlines() if line.strip("# ").strip()), "")
    return Skill(
        name=scalar(fields.get("name")) or folder,
        description=" ".join((scalar(fields.get("description")) or first_line).split()),
        location=file.name,
        body=body,
        file=file,
        always=fields.get("always") is True,
        missing=tuple(missing_needs(fields.get("requires"))),
    )


def split_front_matter(text: str) -> tuple[str, str]:
    """The YAML between two lines `---` at the top, and the rest."""
    lines = text.splitlines()
    if not lines or lines[0].strip() != "---":
        return "", text
    for number, line in enumerate(lines[1:], 1):
        if line.strip() == "---":
            return "\n".join(lines[1:number]), "\n".join(lines[number + 1 :]).strip()
    return "", text


def parse_front_matter(head: str) -> dict[str, object]:
    if not head or len(head) > LONGEST_HEAD:
        return {}
    import yaml  # only when there are skills: 40 ms

    try:
        data: object = yaml.safe_load(head)
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    return data if is_mapping(data) else {}


def scalar(value: object) -> str:
    """Text and numbers as text. Not `str(value)`: nested aliases of YAML would grow without end."""
    return str(value) if isinstance(value, str | int | float) else ""


def is_mapping(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


def missing_needs(requires: object) -> list[str]:
    """What is not there of `requires`: a list of programs, or `bins:` and `env:`."""
    bins, env = requires, None
    if is_mapping(requires):
        bins, env = requires.get("bins"), requires.get("env")
    missing = [f"bin:{name}" for name in names(bins) if not shutil.which(name)]
    return missing + [f"env:{name}" for name in names(env) if name not in os.environ]


def names(value: object) -> list[str]:
    return [name for item in value if (name := scalar(item))] if is_list(value) else []


def index(skills: list[Skill]) -> str:
    """The index as the model sees it."""
    lines = ["<skills>"]
    for skill in skills:
        requires = f"<requires>{escape(', '.join(skill.missing))}</requires>" if skill.missing else ""
        lines.append(
            f'<skill available="{"false" if skill.missing else "true"}"><name>{escape(skill.name)}</name>'
            f"<description>{escape(skill.description[:500])}</description>"
            f"<location>{escape(skill.location)}</location>{requires}</skill>"
        )
    return "\n".join([*lines, "</skills>"])


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
