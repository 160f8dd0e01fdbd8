"""Front matter that was read before, by its hash, in a file of the home: a turn never reads YAML again.

What the bundled skills say has been read already: `SHIPPED` is what a new home begins with.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec
from msgspec import Struct, field

from limpet.skills import front_matter
from limpet.skills.skill import FILE, Front

FORMAT = 1
"""Raised whenever `front_matter` reads something otherwise."""
SHIPPED = Path(__file__).with_name("bundled_fronts.json")
"""Made by `python -m limpet.skills.fronts`."""
_MOST = 500


class _Kept(Struct):
    format: int = FORMAT
    fronts: dict[str, Front] = field(default_factory=dict[str, Front])


class Fronts:
    """Reads front matter, keeping what was read in the file `path`; it may be deleted at any time."""

    def __init__(self, path: Path, kept: dict[str, Front] | None = None) -> None:
        self._path = path
        self._kept = kept
        self._new = False

    def read(self, head: str) -> Front:
        kept = self._load()
        key = hashlib.sha256(head.encode("utf-8", "replace")).hexdigest()
        found = kept.get(key)
        if found is None:
            found = kept[key] = front_matter.read(head)
            self._new = True
        return found

    def save(self) -> None:
        """Write what is new. A home that cannot be written costs time, nothing else."""
        if not self._new or self._kept is None:
            return
        self._new = False
        newest = dict(list(self._kept.items())[-_MOST:])
        draft = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            draft.write_bytes(msgspec.json.encode(_Kept(fronts=newest)))
            draft.replace(self._path)
        except OSError:
            draft.unlink(missing_ok=True)

    def _load(self) -> dict[str, Front]:
        if self._kept is None:
            self._kept = _kept_in(self._path) or _kept_in(SHIPPED) or {}
        return self._kept


def _kept_in(path: Path) -> dict[str, Front]:
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=_Kept)
    except (OSError, msgspec.DecodeError):
        return {}
    return kept.fronts if kept.format == FORMAT else {}


def shipped() -> bytes:
    """What `SHIPPED` is to hold."""
    kept: dict[str, Front] = {}
    fronts = Fronts(Path(os.devnull), kept)
    for path in sorted((SHIPPED.parent / "bundled").glob(f"*/{FILE}")):
        fronts.read(front_matter.split(path.read_text("utf-8").strip())[0])
    return msgspec.json.format(msgspec.json.encode(_Kept(fronts=kept)), indent=1) + b"\n"


if __name__ == "__main__":
    SHIPPED.write_bytes(shipped())
