"""Anthropic's Messages: `/v1/messages`."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Raw, Struct

from limpet.server.api.asks import Ask, Ended, Fault, Head, Line
from limpet.server.api.shapes import choice, encode, event, sampling, tool
from limpet.types.content import ToolCall
from limpet.types.usage import Usage

Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,128}$")]
STOPS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "refusal": "refusal"}
TAKEN = ("text", "image", "tool_use", "tool_result", "thinking", "redacted_thinking")


class Source(Struct):
    type: str
    media_type: str = ""
    data: str = ""
    url: str = ""


class Block(Struct):
    type: str
    text: str = ""
    source: Source | None = None
    id: str = ""
    name: str = ""
    input: dict[str, object] | None = None
    tool_use_id: str = ""
    content: str | list[Block] | None = None
    is_error: bool | None = False


class Message(Struct):
    role: Literal["user", "assistant"]
    content: str | list[Block]


class Tool(Struct):
    name: Name
    description: str | None = None
    input_schema: dict[str, object] | None = None
    type: str | None = "custom"


class Choice(Struct):
    type: str


class Metadata(Struct):
    user_id: str | None = None
    session: str | None = None


class Body(Struct):
    """The fields that mean something here; others are told in the header `X-Limpet-Ignored`."""

    model: str
    max_tokens: int
    messages: Annotated[list[Message], Meta(min_length=1)]
    system: str | list[Block] | None = None
    stream: bool | None = False
    tools: list[Tool] | None = None
    tool_choice: Choice | None = None
    temperature: float | None = None
    stop_sequences: list[str] | None = None
    metadata: Metadata | None = None


_decode = msgspec.json.Decoder(Body).decode


class Messages:
    """Implements the port `Dialect`."""

    prefix = "msg_"
    fields = Body.__struct_fields__

    def read(self, body: bytes) -> Ask:
        given = _decode(body)
        for one in given.tools or ():
            if one.type not in (None, "custom"):
                raise Fault(400, f"Tools of the type {one.type!r} are not known here.", field="tools")
        metadata = given.metadata or Metadata()
        return Ask(
            model=given.model,
            lines=tuple(line for message in given.messages for line in _lines(message)),
            system=_said(given.system),
            tools=tuple(tool(one.name, one.description, one.input_schema) for one in given.tools or ()),
            choice=choice(given.tool_choice.type if given.tool_choice else None),
            sampling=sampling(given.temperature, given.max_tokens, field="max_tokens"),
            stop=tuple(filter(None, given.stop_sequences or ())),
            stream=bool(given.stream),
            session=metadata.session or metadata.user_id or "",
        )

    def whole(self, head: Head, ended: Ended) -> bytes:
        blocks: list[object] = [{"type": "text", "text": ended.text, "citations": None}] if ended.text else []
        blocks += [{**_call(one), "input": Raw(one.arguments.encode())} for one in ended.calls]
        return encode({**_frame(head), "content": blocks, **_ended(ended), "usage": usage(ended.usage)})

    def speaker(self, head: Head) -> Speech:
        return Speech(head)

    def fault(self, fault: Fault) -> bytes:
        return encode(error(fault))


class Speech:
    """Implements the port `Speaker`: blocks, each with its begin, its pieces and its end."""

    def __init__(self, head: Head) -> None:
        self._head = head
        self._index = 0
        self._speaking = False

    def begin(self) -> bytes:
        message: dict[str, object] = {**_frame(self._head), "content": [], "stop_reason": None, "stop_sequence": None}
        return _event("message_start", message={**message, "usage": usage(Usage())})

    def piece(self, text: str) -> bytes:
        begun = b"" if self._speaking else self._block({"type": "text", "text": ""})
        self._speaking = True
        return begun + self._delta({"type": "text_delta", "text": text})

    def end(self, ended: Ended) -> bytes:
        said = self._close()
        for one in ended.calls:
            said += self._block({**_call(one), "input": {}})
            said += self._delta({"type": "input_json_delta", "partial_json": one.arguments})
            self._speaking = True
            said += self._close()
        said += _event("message_delta", delta=_ended(ended), usage=usage(ended.usage))
        return said + _event("message_stop")

    def fail(self, fault: Fault) -> bytes:
        return event(error(fault), name="error")

    def rest(self) -> bytes:
        return _event("ping")

    def _block(self, block: dict[str, object]) -> bytes:
        return _event("content_block_start", index=self._index, content_block=block)

    def _delta(self, delta: dict[str, object]) -> bytes:
        return _event("content_block_delta", index=self._index, delta=delta)

    def _close(self) -> bytes:
        if not self._speaking:
            return b""
        self._speaking = False
        self._index += 1
        return _event("content_block_stop", index=self._index - 1)


def error(fault: Fault) -> dict[str, object]:
    """Anthropic's own words for what went wrong."""
    kinds = {
        401: "authentication_error",
        402: "billing_error",
        403: "permission_error",
        404: "not_found_error",
        413: "request_too_large",
        429: "rate_limit_error",
        504: "timeout_error",
    }
    kind = kinds.get(fault.status, "api_error" if fault.status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": str(fault)}}


def usage(used: Usage) -> dict[str, object]:
    return {
        "input_tokens": used.input,
        "output_tokens": used.output,
        "cache_read_input_tokens": used.cache_read,
        "cache_creation_input_tokens": used.cache_write,
    }


def _lines(message: Message) -> list[Line]:
    """Results of tools stand in a user's message here; they come before what else it says."""
    if isinstance(message.content, str):
        return [Line(message.role, message.content)]
    for block in message.content:
        if block.type not in TAKEN:
            raise Fault(400, f"Blocks of the type {block.type!r} are not taken.", field="messages")
    results = [
        Line("tool", _said(one.content), _pictures(one.content), call=one.tool_use_id, is_error=bool(one.is_error))
        for one in message.content
        if one.type == "tool_result"
    ]
    rest = [one for one in message.content if one.type != "tool_result"]
    calls = tuple(
        ToolCall(one.id, one.name, encode(one.input or {}).decode()) for one in rest if one.type == "tool_use"
    )
    said = Line(message.role, _said(rest), _pictures(rest), calls)
    return [*results, *([said] if rest else [])]


def _said(content: str | list[Block] | None) -> str:
    if not isinstance(content, list):
        return content or ""
    return "\n".join(block.text for block in content if block.type == "text" and block.text)


def _pictures(content: str | list[Block] | None) -> tuple[str, ...]:
    found = [block.source for block in content if block.source is not None] if isinstance(content, list) else []
    return tuple(one.url or f"data:{one.media_type};base64,{one.data}" for one in found)


def _call(call: ToolCall) -> dict[str, object]:
    return {"type": "tool_use", "id": call.id, "name": call.name}


def _frame(head: Head) -> dict[str, object]:
    return {"id": f"msg_{head.number}", "type": "message", "role": "assistant", "model": head.model}


def _ended(ended: Ended) -> dict[str, object]:
    stop = "stop_sequence" if ended.sequence else STOPS.get(ended.stop, "end_turn")
    return {"stop_reason": stop, "stop_sequence": ended.sequence or None}


def _event(name: str, **fields: object) -> bytes:
    return event({"type": name, **fields}, name=name)
