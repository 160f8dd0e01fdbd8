"""Front matter that was read before, by its hash, in a file of the home: a turn never reads YAML again."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec
from msgspec import Struct, field

from limpet.skills import front_matter
from limpet.skills.skill import Front

FORMAT = 1
"""Raised whenever `front_matter` reads something otherwise."""
_MOST = 500


class _Kept(Struct):
    format: int = FORMAT
    fronts: dict[str, Front] = field(default_factory=dict[str, Front])


class Fronts:
    """Reads front matter, keeping what was read in the file `path`; it may be deleted at any time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept: dict[str, Front] | None = None
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
            try:
                kept = msgspec.json.decode(self._path.read_bytes(), type=_Kept)
            except (OSError, msgspec.DecodeError):
                kept = _Kept()
            self._kept = kept.fronts if kept.format == FORMAT else {}
        return self._kept
