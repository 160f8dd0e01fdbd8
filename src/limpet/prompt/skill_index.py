"""The index of skills: what the agent may look up. Bodies are read on demand, except of skills marked `always`."""

from __future__ import annotations

import os
import shutil
from typing import TypeGuard

from msgspec import Struct

from limpet.prompt.bootstrap import FileText, read_workspace_file


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
        name=str(fields.get("name") or folder),
        description=" ".join(str(fields.get("description") or first_line).split()),
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
    if not head:
        return {}
    import yaml  # only when there are skills: 40 ms

    try:
        data: object = yaml.safe_load(head)
    except (yaml.YAMLError, ValueError):
        return {}
    return data if is_mapping(data) else {}


def is_mapping(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


def missing_needs(requires: object) -> list[str]:
    """What is not there of `requires`: a list of programs, or `bins:` and `env:`."""
    bins, env = requires, None
    if is_mapping(requires):
        bins, env = requires.get("bins"), requires.get("env")
    missing = [f"bin:{name}" for name in bins if not shutil.which(str(name))] if is_list(bins) else []
    return missing + ([f"env:{name}" for name in env if str(name) not in os.environ] if is_list(env) else [])


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
