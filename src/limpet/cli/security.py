"""What `limpet security audit` is made of: holes, the scene that checks look at, and running them."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from limpet.config.paths import Home
from limpet.config.schema import Settings
from limpet.config.table import Table
from limpet.errors import LimpetError
from limpet.sandbox.probe import SandboxReport
from limpet.store.sql import Connection

log = logging.getLogger(__name__)

Risk = Literal["critical", "warning", "note"]
ORDER: tuple[Risk, ...] = ("critical", "warning", "note")


class Fix(Struct, frozen=True):
    """Take the permissions `bits` of others away from `path`: what is safe to do without asking."""

    path: str
    bits: int = 0o077

    def apply(self) -> None:
        """Raises `OSError`."""
        os.chmod(self.path, os.stat(self.path).st_mode & ~self.bits & 0o7777)


class Hole(Struct, frozen=True, omit_defaults=True):
    """One thing that is open. `remedy` says what closes it, `fix` does where that is safe."""

    risk: Risk
    text: str
    remedy: str
    check: str = ""
    fix: Fix | None = None


class Scene(Struct, frozen=True):
    """What checks look at. `secrets` are the known values by name, `user` is the effective user id, `now` seconds.

    `database` is None when there is none yet, or when `fault` says why it cannot be read.
    """

    home: Home
    settings: Settings
    table: Table
    workspace: Path
    environ: Mapping[str, str]
    sandbox: SandboxReport
    secrets: Mapping[str, str]
    user: int
    now: float
    database: Connection | None = None
    fault: str = ""


Check = Callable[[Scene], Iterator[Hole]]


def examine(scene: Scene, checks: Sequence[Check]) -> list[Hole]:
    """All that is open, the worst first; each names the check that found it."""
    found = [hole for check in checks for hole in _run(check, scene)]
    return sorted(found, key=lambda hole: ORDER.index(hole.risk))


def _run(check: Check, scene: Scene) -> Iterable[Hole]:
    """A boundary: a check that fails is a finding, and the others still run."""
    name = name_of(check)
    try:
        return [Hole(hole.risk, hole.text, hole.remedy, name, hole.fix) for hole in check(scene)]
    except (LimpetError, OSError, ValueError) as error:
        log.warning("the check %s failed", name, exc_info=True)
        return [Hole("warning", f"this could not be looked at: {error}", "See `limpet doctor`.", name)]


def name_of(check: Check) -> str:
    """Its function's name in words."""
    return getattr(check, "__name__", "check").replace("_", " ")
