"""Arguments of a call as a provider sent them, to the text of one JSON object. Nothing is repaired by guessing."""

from __future__ import annotations

import msgspec

from limpet.llm.unicode import clean, clean_json, decode_json

CUT_OFF = "the call was cut off before its arguments were complete; nothing was run"
NOT_OBJECT = "arguments must be an object"
SEVERAL = "the arguments are several JSON values run together; send one object a call"
UNREADABLE = "the arguments are not valid JSON"


def settle(text: str, *, ended: bool) -> tuple[str, str]:
    """The arguments as JSON object text, and the fault (then the text is `{}`).

    `ended`: the stream came to its regular end, so that one missing closing brace is a slip and not a cut.
    """
    text = clean(text)
    if text.strip() in ("", "null"):
        return "{}", ""
    try:
        return _object(text, decode_json(text, object))
    except (msgspec.DecodeError, RecursionError):
        from limpet.llm.repair import candidates, fault_of  # damage is rare
    for candidate in candidates(text, ended=ended):
        try:
            return _object(candidate, decode_json(candidate, object))
        except (msgspec.DecodeError, RecursionError):
            continue
    return "{}", fault_of(text)


def _object(text: str, value: object) -> tuple[str, str]:
    if isinstance(value, str):  # encoded twice
        if value.strip() in ("", "null"):
            return "{}", ""
        try:
            value, text = decode_json(value, object), value
        except (msgspec.DecodeError, RecursionError):
            return "{}", NOT_OBJECT
    if not isinstance(value, dict):
        return "{}", NOT_OBJECT
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:  # half characters, or what only the standard library takes for JSON (NaN)
        text = clean_json(value)  # pyright: ignore[reportUnknownArgumentType]
    return text.strip(), ""
