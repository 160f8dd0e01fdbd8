"""The rules of the scan, from `scan_rules.toml`; read when something is scanned."""

from __future__ import annotations

import re
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

Level = Literal["danger", "warning"]


class Rule(Struct, frozen=True, dict=True):
    """`pattern` is looked for in a line; `why` is what that does."""

    name: str
    level: Level
    why: str
    pattern: str

    def search(self, line: str) -> str:
        """What it finds, empty when nothing."""
        found = self._compiled.search(line)
        return found[0].strip() if found else ""

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, re.IGNORECASE)


class _File(Struct, frozen=True):
    parts: dict[str, str]
    rules: tuple[Rule, ...]


@cache
def rules() -> tuple[Rule, ...]:
    """All rules, the parts put in."""
    file = msgspec.toml.decode(Path(__file__).with_suffix(".toml").read_bytes(), type=_File)
    return tuple(msgspec.structs.replace(rule, pattern=_filled(rule.pattern, file.parts)) for rule in file.rules)


def _filled(pattern: str, parts: dict[str, str]) -> str:
    for _ in range(2):  # a part may name another one
        for name, part in parts.items():
            pattern = pattern.replace(f"<{name}>", part)
    return pattern
