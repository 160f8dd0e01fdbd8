"""How far we have read, kept in `sync.json` of the account's folder."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec


class Place:
    def __init__(self, folder: str) -> None:
        self._file = Path(folder) / "sync.json"

    def read(self) -> str:
        """The token of the last sync that was stored; empty: there was none."""
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=str)
        except FileNotFoundError:
            return ""

    def write(self, token: str) -> None:
        """On disk when this returns, and never half."""
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self._file.with_suffix(".new")
        with draft.open("wb") as file:
            file.write(msgspec.json.encode(token))
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, self._file)
