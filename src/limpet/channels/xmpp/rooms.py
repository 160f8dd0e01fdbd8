"""Until when we have heard what was said in a room, so that we can ask for the rest."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

_MARGIN = timedelta(minutes=2)
"""The server's clock and ours may differ; what comes twice is known by its id."""


class Known(msgspec.Struct, frozen=True):
    """UTC milliseconds: since when we know a room, and until when we have what was said there."""

    since: int
    until: int


class Rooms:
    """Kept in `rooms.json` of `folder`."""

    def __init__(self, folder: str) -> None:
        self._file = Path(folder) / "rooms.json"
        self._rooms: dict[str, Known] | None = None

    def since(self, room: str) -> datetime | None:
        """From when on we want the history of a room; None: we have never been there."""
        known = self._all().get(room)
        return None if known is None else datetime.fromtimestamp(known.until / 1000, UTC) - _MARGIN

    def wants(self, room: str, time: int) -> bool:
        """Whether what was said at `time` in the history of a room is from our time there."""
        known = self._all().get(room)
        return known is not None and time >= known.since

    def note(self, room: str, time: int) -> None:
        """All until `time` is stored; on disk when this returns."""
        # Histories know only seconds.
        known = self._all().get(room, Known(time // 1000 * 1000, time - 1))
        if time <= known.until:
            return
        self._all()[room] = Known(known.since, time)
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self._file.with_suffix(".new")
        draft.write_bytes(msgspec.json.encode(self._all()))
        os.replace(draft, self._file)

    def _all(self) -> dict[str, Known]:
        if self._rooms is None:
            try:
                self._rooms = msgspec.json.decode(self._file.read_bytes(), type=dict[str, Known])
            except FileNotFoundError:
                self._rooms = {}
        return self._rooms
