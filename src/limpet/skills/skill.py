"""What a skill is: its front matter, where it was found, what is wrong with it and what it lacks here."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Origin = Literal["workspace", "agents", "user", "home", "bundled", "extra"]
FILE = "SKILL.md"
BASE = "{baseDir}"
"""What a body says for the folder of its skill."""


class Fault(Struct, frozen=True):
    """Something wrong in a file of a skill: `line` from 1 (0 = the file as a whole) and what to do about it."""

    path: str
    line: int
    text: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.path}{f':{self.line}' if self.line else ''}: {self.text} {self.remedy}"


class Needs(Struct, frozen=True, omit_defaults=True):
    """What the owner grants once: hosts for commands, the `host` place, secrets by name. `bins` are told only."""

    hosts: tuple[str, ...] = ()
    host: bool = False
    bins: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.hosts or self.host or self.secrets)

    def told(self) -> str:
        """In words, for people and for the model."""
        parts = [f"hosts {', '.join(self.hosts)}"] if self.hosts else []
        parts += ["commands on the host"] if self.host else []
        parts += [f"secrets {', '.join(self.secrets)}"] if self.secrets else []
        parts += [f"programs {', '.join(self.bins)}"] if self.bins else []
        return "; ".join(parts) or "nothing"


class Gates(Struct, frozen=True, omit_defaults=True):
    """What must be there: an operating system, programs (all, one of), variables, settings, tools of Limpet.

    `skipped`: the skill says that only the system counts.
    """

    os: tuple[str, ...] = ()
    bins: tuple[str, ...] = ()
    any_bins: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    config: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    skipped: bool = False


class ToolFile(Struct, frozen=True, omit_defaults=True):
    """A tool that a skill brings: `run` is the command (a file of the skill first), `parameters` a JSON Schema."""

    name: str
    description: str
    run: tuple[str, ...]
    parameters: str = '{"type":"object","properties":{}}'
    timeout: int = 60


class Problem(Struct, frozen=True):
    """A fault of front matter, by its line in the file."""

    line: int
    text: str
    remedy: str


class Front(Struct, frozen=True, omit_defaults=True):
    """The front matter of a SKILL.md, checked."""

    name: str = ""
    description: str = ""
    homepage: str = ""
    always: bool = False
    invocable: bool = True
    listed: bool = True
    gates: Gates = Gates()
    needs: Needs = Needs()
    triggers: tuple[str, ...] = ()
    tools: tuple[ToolFile, ...] = ()
    problems: tuple[Problem, ...] = ()


class Skill(Struct, frozen=True):
    """A skill that was found. `folder` is absolute; `location` is its file as the model reads it.

    `body` is the text behind the front matter as it stands in the file, `sha256` that of the file. `missing` is what it
    needs and this machine lacks, `ungranted` whether its needs wait for the owner's word.
    """

    name: str
    description: str
    origin: Origin
    folder: str
    location: str
    body: str
    sha256: str
    front: Front = Front()
    missing: tuple[str, ...] = ()
    ungranted: bool = False
    tools: tuple[ToolFile, ...] = ()

    @property
    def instructions(self) -> str:
        """The body as the model gets it."""
        return self.body.replace(BASE, self.folder)

    @property
    def command(self) -> str:
        """The slash command that calls it."""
        return self.name.lower().replace("-", "_")
