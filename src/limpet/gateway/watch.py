"""Watching: what happens in turns is told to whoever looks on, with the session key of the turn it happens in.

Events carry no key of their own; the task of a lane does, and everything that it calls inherits it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

from limpet.types.event import Event, Notice

log = logging.getLogger(__name__)

Listener = Callable[[str, Event], None]
"""Told of an event under a session key. Never raises, never blocks."""
_key: ContextVar[str] = ContextVar("session key", default="")


class Watch:
    """Hands events on to its listeners."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def emit(self, event: Event) -> None:
        """Implements the port `Emit`."""
        key = _key.get()
        if not key and isinstance(event, Notice):
            log.log(logging.WARNING if event.level == "warning" else logging.INFO, "%s", event.text)
        for listener in tuple(self._listeners):
            listener(key, event)

    @contextmanager
    def listening(self, listener: Listener) -> Generator[None]:
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)


@contextmanager
def within(key: str) -> Generator[None]:
    """What happens inside happens under this session key."""
    token = _key.set(key)
    try:
        yield
    finally:
        _key.reset(token)
