"""Groups that became supergroups: Telegram gives them a new id, for us they keep the one they had."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec


class Moves:
    """New ids to the ids we know, kept in `chats.json` of `folder` so that sessions and allow-lists go on."""

    def __init__(self, folder: str) -> None:
        self._file = Path(folder) / "chats.json"
        self._known: dict[str, str] | None = None

    def known(self, chat: str) -> str:
        """The id under which we know the chat that Telegram calls `chat`."""
        return self._all().get(chat, chat)

    def now(self, chat: str) -> str:
        """What Telegram calls the chat that we know as `chat`."""
        return next((new for new, old in self._all().items() if old == chat), chat)

    def note(self, old: str, new: str) -> None:
        """The chat `old` is called `new` from now on; on disk when this returns."""
        moves = self._all()
        if moves.get(new) == self.known(old):
            return
        first = self.known(old)
        kept = {late: early for late, early in moves.items() if early != first}
        self._known = {**kept, new: first}
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self._file.with_suffix(".new")
        draft.write_bytes(msgspec.json.encode(self._known))
        os.replace(draft, self._file)

    def _all(self) -> dict[str, str]:
        if self._known is None:
            try:
                self._known = msgspec.json.decode(self._file.read_bytes(), type=dict[str, str])
            except FileNotFoundError:
                self._known = {}
        return self._known
