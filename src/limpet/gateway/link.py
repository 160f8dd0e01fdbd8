"""One-time links to the page: made by a command, taken by the gateway, which both know the server's token.

A link says until when it holds and has a name of its own, signed with the token. The gateway remembers the names that
were used, and takes none that is older than itself.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

from msgspec import Struct

LASTS = 300_000
"""Milliseconds that a link is good for."""
_FORM = re.compile(r"([0-9]{13})-([A-Za-z0-9_-]{22})-([0-9a-f]{64})")


class Link(Struct, frozen=True):
    """A genuine link: its `name`, and when it was made (UTC ms)."""

    name: str
    made: int


def make(token: str, *, now: int) -> str:
    """The secret part of a new link, fit for an address."""
    body = f"{now:013}-{secrets.token_urlsafe(16)}"
    return f"{body}-{_signed(token, body)}"


def read(token: str, text: str, *, now: int) -> Link | None:
    """The link that `text` is; None for one that is not genuine or too old."""
    found = _FORM.fullmatch(text)
    if found is None or not hmac.compare_digest(_signed(token, text.rpartition("-")[0]), found[3]):
        return None
    made = int(found[1])
    return Link(found[2], made) if made <= now + 1_000 and now - made < LASTS else None


def _signed(token: str, body: str) -> str:
    return hmac.new(token.encode(), f"limpet one-time link {body}".encode(), hashlib.sha256).hexdigest()
