"""What the conversation before this one was about (section 8 of the prompt)."""

from __future__ import annotations

from limpet.session.log import Log
from limpet.session.stand_in import without_model
from limpet.store import entries, sessions
from limpet.store.driver import Store

TOKENS = 1_000
"""Tokens that rules alone may use to say what a conversation was about."""


def summary_before(store: Store, key: str, *, ending: str = "") -> str:
    """The summary of the newest ended session of `key`, or of the session `ending` that ends now.

    While none is written yet, it is made by rules: nobody waits for a model here.
    """
    if ending:
        row = store.read(lambda connection: sessions.find(connection, ending))
    else:
        row = store.read(lambda connection: sessions.newest_ended(connection, key))
    if row is None or row.summary:
        return row.summary if row else ""
    return by_rules(Log(store.read(lambda connection: entries.load(connection, row.id))))


def by_rules(ended: Log) -> str:
    """What an ended conversation was about, without a model."""
    previous, visible = ended.visible()
    return without_model(visible, previous, tokens=TOKENS) if visible else previous
