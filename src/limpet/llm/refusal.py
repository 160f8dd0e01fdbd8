"""The provider's own words in the body of a refusal, whatever its form."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from limpet.llm.unicode import clean


class Refusal(Struct, frozen=True):
    """The provider's own words: `codes` are all its short names for the fault (code, type, status).

    `parameter` is the field it complains about, `inside` what the provider behind it said.
    """

    message: str = ""
    codes: tuple[str, ...] = ()
    limit: int = 0
    parameter: str = ""
    inside: str = ""


def read(body: bytes) -> Refusal:
    """The provider's words in an error body of any of the usual forms; plain text counts as the message."""
    try:
        value: object = msgspec.json.decode(body)
    except msgspec.DecodeError:
        text = body[:500].decode("utf-8", "replace").strip()
        return Refusal("" if text[:1] in ("<", "{") else clean(text))
    if isinstance(value, list):  # Gemini's compatible endpoint wraps its error in a list
        return next((refusal_in(item) for item in msgspec.convert(value, list[object])), Refusal())
    return refusal_in(value)


class _Body(Struct):
    """Error bodies of OpenAI, Anthropic, Ollama (`error` is a text), FastAPI (`detail`) and plain `message`."""

    error: object = None
    message: object = None
    detail: object = None
    code: object = None
    type: object = None
    status: object = None
    n_ctx: object = None
    param: object = None
    metadata: object = None
    details: object = None


def refusal_in(value: object) -> Refusal:
    """The provider's words in an error object that is decoded already."""
    if isinstance(value, str):
        return Refusal(clean(value))
    try:
        body = msgspec.convert(value, _Body)
    except msgspec.ValidationError:
        return Refusal()
    if body.error is not None:
        inner = refusal_in(body.error)
        if inner.message or inner.codes:
            return inner
    codes = tuple(str(code) for code in (body.code, body.type, body.status) if isinstance(code, str | int))
    codes += _reasons(body.details)
    faults = _faults(body.detail) or _faults(body.message)
    codes += tuple(fault.type for fault in faults[:1])
    message = next((text for text in (body.message, body.detail, body.error) if isinstance(text, str)), "")
    if not message and (structured := body.detail or body.message):
        message = msgspec.json.encode(structured).decode()
    parameter = body.param if isinstance(body.param, str) else faults[0].name if faults else ""
    raw = _upstream(body.metadata)
    limit = body.n_ctx if isinstance(body.n_ctx, int) else 0
    if not raw:
        return Refusal(clean(message), codes, limit, clean(parameter))
    inside = read(raw.encode("utf-8", "replace"))
    told = clean(f"{message} ({raw[:300]})")
    return Refusal(told, codes + inside.codes, limit, inside.parameter or clean(parameter), inside.message)


class _Fault(Struct):
    """One fault of pydantic (FastAPI's `detail`): `loc` is the path to the field."""

    type: str = ""
    loc: tuple[str | int, ...] = ()

    @property
    def name(self) -> str:
        return next((part for part in reversed(self.loc) if isinstance(part, str)), "")


class _Faults(Struct):
    detail: list[_Fault]


def _faults(value: object) -> list[_Fault]:
    """The faults that pydantic listed, bare or as `{"detail": [...]}`, those first that name a field too many."""
    try:
        found = msgspec.convert(value, list[_Fault] | _Faults)
    except msgspec.ValidationError:
        return []
    faults = found.detail if isinstance(found, _Faults) else found
    return sorted(faults, key=lambda fault: fault.type != "extra_forbidden")


class _Detail(Struct):
    reason: str = ""


def _reasons(details: object) -> tuple[str, ...]:
    """Google names the fault in a list of details."""
    try:
        return tuple(detail.reason for detail in msgspec.convert(details or [], list[_Detail]) if detail.reason)
    except msgspec.ValidationError:
        return ()


def _upstream(metadata: object) -> str:
    """OpenRouter passes on what the provider behind it said."""
    try:
        raw = msgspec.convert(metadata, dict[str, object]).get("raw")
    except msgspec.ValidationError:
        return ""
    return raw if isinstance(raw, str) else ""
