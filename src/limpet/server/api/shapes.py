"""What the dialects have in common: events, tools, numbers."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from limpet.server.api.asks import Fault
from limpet.types.message import Sampling, ToolChoice
from limpet.types.tool import ToolSpec

encode = msgspec.json.Encoder().encode
NO_PARAMETERS: dict[str, object] = {"type": "object", "properties": {}}


def event(body: object, *, name: str = "") -> bytes:
    """One event of a stream."""
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + encode(body) + b"\n\n"


def tool(name: str, description: str | None, parameters: dict[str, object] | None) -> ToolSpec:
    """A program's own tool."""
    return ToolSpec(name, description or "", Raw(encode(parameters or NO_PARAMETERS)))


def choice(given: object) -> ToolChoice:
    """Whether tools may be called. Raises `Fault`: no call can be forced."""
    if given in (None, "auto", "none"):
        return "none" if given == "none" else "auto"
    raise Fault(400, "A call cannot be forced here: `tool_choice` is `auto` or `none`.", field="tool_choice")


def sampling(temperature: float | None, max_tokens: int | None, *, field: str) -> Sampling:
    """Raises `Fault`."""
    if temperature is not None and not 0 <= temperature <= 2:
        raise Fault(400, "`temperature` is a number from 0 to 2.", field="temperature")
    if max_tokens is not None and max_tokens < 1:
        raise Fault(400, f"`{field}` is a whole number from 1 on.", field=field)
    return Sampling(temperature=temperature, max_tokens=max_tokens)


def stops(given: str | list[str] | None) -> tuple[str, ...]:
    found = (given,) if isinstance(given, str) else tuple(given or ())
    return tuple(one for one in found if one)
