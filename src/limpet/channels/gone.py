"""Messages of ours that were taken away, on platforms that would change them nevertheless."""

from __future__ import annotations

_MOST = 1_000


class Gone:
    """Knows the last thousand."""

    def __init__(self) -> None:
        self._known: dict[str, None] = {}

    def add(self, message: str) -> None:
        self._known[message] = None
        if len(self._known) > _MOST:
            del self._known[next(iter(self._known))]

    def __contains__(self, message: str) -> bool:
        return message in self._known
