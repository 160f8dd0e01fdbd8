"""What the conversation before this one was about (section 8 of the prompt)."""

from __future__ import annotations

from msgspec import Struct

from limpet.session.log import Log
from limpet.session.stand_in import without_model
from limpet.store import entries, sessions
from limpet.store.driver import Store
from limpet.types.envelope import Trust, lowest

TOKENS = 1_000
"""Tokens that rules alone may use to say what a conversation was about."""


class Before(Struct, frozen=True):
    """What a conversation was about, and how far that is trusted: as little as anything that was said in it."""

    text: str = ""
    trust: Trust = "owner"


def summary_before(store: Store, key: str, *, ending: str = "") -> Before:
    """The summary of the newest ended session of `key`, or of the session `ending` that ends now.

    While none is written yet, it is made by rules: nobody waits for a model here.
    """
    if ending:
        row = store.read(lambda connection: sessions.find(connection, ending))
    else:
        row = store.read(lambda connection: sessions.newest_ended(connection, key))
    if row is None:
        return Before()
    text = row.summary or by_rules(Log(store.read(lambda connection: entries.load(connection, row.id))))
    return Before(text, lowest(store.read(lambda connection: entries.trusts(connection, row.id, but="prompt"))))


def by_rules(ended: Log) -> str:
    """What an ended conversation was about, without a model."""
    previous, visible = ended.visible()
    return without_model(visible, previous, tokens=TOKENS) if visible else previous
