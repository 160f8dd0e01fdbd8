"""Half characters: UTF-16 surrogates that came alone, which no UTF-8 text may hold.

Providers escape characters beyond U+FFFF as two `\\uXXXX` and may cut a delta between them.
"""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec

_LONE = re.compile("[\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
T = TypeVar("T")


def clean(text: str) -> str:
    """`text` with surrogate pairs joined and lone halves replaced by U+FFFD."""
    if text.isascii() or _LONE.search(text) is None:
        return text
    return _LONE.sub("\ufffd", _PAIR.sub(_joined, text))


def _joined(match: re.Match[str]) -> str:
    return match[0].encode("utf-16", "surrogatepass").decode("utf-16")


def decode_json(data: bytes | str, kind: type[T]) -> T:
    """`data` as `kind`. Texts inside may hold lone surrogates: pass them through `Halves` or `clean`.

    Raises `msgspec.DecodeError` when it is no JSON, `msgspec.ValidationError` when it is of another shape.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError as error:
        text = data if isinstance(data, str) else data.decode("utf-8", "replace")
        if "\\ud" not in text and "\\uD" not in text and isinstance(data, str):
            raise
        import json  # only for what msgspec refuses

        try:
            value: object = json.loads(text)
        except (ValueError, RecursionError):
            raise error from None
        return msgspec.convert(value, kind)


def clean_json(value: object) -> str:
    """Compact JSON of `value` without lone surrogates; what JSON cannot say (NaN) becomes null."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        import json  # only for what msgspec refuses
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return msgspec.json.encode(msgspec.json.decode(clean(_finite(text)))).decode()


def _finite(text: str) -> str:
    if "NaN" not in text and "Infinity" not in text:
        return text
    return re.sub(r'("(?:[^"\\]|\\.)*")|-?(?:NaN|Infinity)', lambda match: match[1] or "null", text, flags=re.S)


class Halves:
    """Joins one stream of text: keeps a high half at the end of a piece until the next piece tells what it is."""

    def __init__(self) -> None:
        self._high = ""

    def feed(self, piece: str) -> str:
        if not self._high and (piece.isascii() or _LONE.search(piece) is None):
            return piece
        piece = self._high + piece
        self._high = ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            piece, self._high = piece[:-1], piece[-1]
        return clean(piece)

    def finish(self) -> str:
        rest, self._high = self._high, ""
        return "\ufffd" if rest else ""
