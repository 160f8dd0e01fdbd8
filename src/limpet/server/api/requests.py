"""Requests of programs: their bodies within bounds, and a name for each, so that a repetition is known."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Raw
from starlette.requests import ClientDisconnect, Request

from limpet.server.api.asks import Fault
from limpet.server.body import TooLargeError, read_body
from limpet.types.ids import new_id

BODY = 60.0
"""Seconds in which a request has to have come completely."""
LONGEST_KEY = 200
REMEMBERED = 1_000
"""Requests without a key whose repetition is known."""
_top = msgspec.json.Decoder(dict[str, Raw])


async def body_of(request: Request, most: int) -> bytes:
    """Raises `Fault`."""
    try:
        return await read_body(request, most, seconds=BODY)
    except TooLargeError:
        raise Fault(413, f"A request has at most {most:,} bytes.", code="request_too_large") from None
    except TimeoutError:
        raise Fault(408, f"The request has not come completely within {BODY:g} s.") from None
    except ClientDisconnect:
        raise Fault(400, "The request has not come completely.") from None


def ignored(body: bytes, known: Iterable[str]) -> str:
    """The fields of a request that mean nothing here, for a header."""
    unknown = sorted(set(_top.decode(body)) - set(known))
    plain = [name for name in unknown if name.isascii() and name.isidentifier()]
    return ", ".join(plain)[:500]


class Repetitions:
    """Names requests by their `Idempotency-Key`; and where clients repeat one by themselves, as the first of them.

    Clients built with Stainless (OpenAI's, Anthropic's) send no key, but say with `x-stainless-retry-count` that they
    try again: the same body is then the same request.
    """

    def __init__(self) -> None:
        self._named: OrderedDict[bytes, str] = OrderedDict()

    def name(self, caller: str, headers: Mapping[str, str], body: bytes) -> str:
        """Raises `Fault`."""
        given = headers.get("idempotency-key", "").strip()
        if len(given) > LONGEST_KEY:
            raise Fault(400, f"An Idempotency-Key has at most {LONGEST_KEY} characters.", code="idempotency_error")
        if given:
            return f"key:{given}"
        digest = hashlib.sha256(caller.encode() + b"\0" + body).digest()
        again = headers.get("x-stainless-retry-count", "0") not in ("", "0")
        name = (self._named.get(digest) if again else None) or new_id("r")
        self._named[digest] = name
        self._named.move_to_end(digest)
        while len(self._named) > REMEMBERED:
            self._named.popitem(last=False)
        return name
