"""The trace of a failed request: its raw bytes as text, without keys, pictures shortened."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from limpet.errors import ModelError
from limpet.llm.exchange import Excerpt, Exchange
from limpet.types.profile import Profile
from limpet.types.trace import MARGIN, REQUEST_KEPT, Extract, Trace

LEFT_OUT = "[left out]"
_SECRET = re.compile(r"auth|key|token|secret|cookie|signature|credential|password|\bsig\b", re.I)
_BLOB = re.compile(r"[A-Za-z0-9+/_-]{1024,}={0,2}")
_SHOWN = 48


def trace_of(exchange: Exchange, error: ModelError, *, session: str, profile: Profile) -> Trace:
    """What went over the wire up to `error`. Known secrets may still stand in it: who keeps it redacts it."""
    return Trace(
        session=session,
        provider=profile.provider,
        model=profile.model,
        reason=f"{type(error).__name__}: {error}",
        url=_url(exchange.url),
        headers=_headers(exchange.headers),
        request=_request(exchange.body),
        status=exchange.status,
        answer_headers=_headers(exchange.answer_headers),
        answer=_answer(exchange.received),
    )


def _headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: LEFT_OUT if _SECRET.search(name) else value for name, value in headers.items()}


def _url(url: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    query = [
        (name, LEFT_OUT if _SECRET.search(name) else value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
    ]
    return urlunsplit((parts.scheme, host, parts.path, urlencode(query, safe="[] ", quote_via=quote), ""))


def _request(body: Sequence[bytes]) -> Extract:
    text = _BLOB.sub(_shortened, b"".join(body).decode("utf-8", "replace"))
    most = REQUEST_KEPT // 2 + MARGIN
    if len(text) <= 2 * most:
        return Extract(text)
    return Extract(text[:most], len(text) - REQUEST_KEPT, text[-most:])


def _shortened(match: re.Match[str]) -> str:
    return f"{match[0][:_SHOWN]}…[{len(match[0]):,} characters of base64]"


def _answer(received: Excerpt) -> Extract:
    head, tail = b"".join(received.head), b"".join(received.tail)
    omitted = received.size - len(head) - len(tail)
    if not omitted:
        return Extract(_text(head + tail))
    return Extract(_text(head), omitted + 2 * MARGIN, _text(tail))


def _text(data: bytes) -> str:
    """Bytes as text; what is none is escaped, so that a binary stream can still be read."""
    return data.decode("utf-8", "backslashreplace")
