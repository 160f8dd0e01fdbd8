"""OpenAI's Chat Completions: `/v1/chat/completions`."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct, field

from limpet.server.api.asks import Ask, Ended, Fault, Head, Line
from limpet.server.api.shapes import choice, encode, event, sampling, stops, tool
from limpet.types.content import ToolCall
from limpet.types.usage import Usage

Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
STOPS = {"stop": "stop", "length": "length", "tool_calls": "tool_calls", "refusal": "content_filter"}


class ImageUrl(Struct):
    url: str


class Part(Struct):
    type: str
    text: str = ""
    image_url: ImageUrl | None = None
    refusal: str = ""


class Function(Struct):
    name: str
    arguments: str = "{}"


class Call(Struct):
    id: str
    function: Function


class Message(Struct):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[Part] | None = None
    tool_calls: list[Call] | None = None
    tool_call_id: str = ""


class FunctionSpec(Struct):
    name: Name
    description: str | None = None
    parameters: dict[str, object] | None = None


class Tool(Struct):
    type: Literal["function"]
    function: FunctionSpec


class StreamOptions(Struct):
    include_usage: bool | None = False


class Format(Struct):
    type: str


class Body(Struct):
    """The fields that mean something here; others are told in the header `X-Limpet-Ignored`."""

    model: str
    messages: Annotated[list[Message], Meta(min_length=1)]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    tools: list[Tool] | None = None
    tool_choice: str | dict[str, object] | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    stop: str | list[str] | None = None
    n: int | None = None
    logprobs: bool | None = None
    response_format: Format | None = None
    user: str | None = None
    metadata: dict[str, str] | None = field(default=None)


_decode = msgspec.json.Decoder(Body).decode


class Chat:
    """Implements the port `Dialect`."""

    prefix = "chatcmpl-"
    fields = Body.__struct_fields__

    def read(self, body: bytes) -> Ask:
        given = _decode(body)
        _check(given)
        system = "\n\n".join(_text(one) for one in given.messages if one.role in ("system", "developer"))
        lines = tuple(_line(one) for one in given.messages if one.role not in ("system", "developer"))
        return Ask(
            model=given.model,
            lines=lines,
            system=system,
            tools=tuple(
                tool(one.function.name, one.function.description, one.function.parameters) for one in given.tools or ()
            ),
            choice=choice(given.tool_choice),
            sampling=sampling(
                given.temperature, given.max_completion_tokens or given.max_tokens, field="max_completion_tokens"
            ),
            stop=stops(given.stop),
            stream=bool(given.stream),
            usage=given.stream_options is not None and bool(given.stream_options.include_usage),
            session=(given.metadata or {}).get("session", "") or given.user or "",
        )

    def whole(self, head: Head, ended: Ended) -> bytes:
        message: dict[str, object] = {"role": "assistant", "content": ended.text or None, "refusal": None}
        if ended.calls:
            message["tool_calls"] = [_call(one) for one in ended.calls]
        first = {"index": 0, "message": message, "logprobs": None, "finish_reason": STOPS.get(ended.stop, "stop")}
        return encode(
            {**_frame(head, "chat.completion"), "choices": [first], "usage": usage(ended.usage)},
        )

    def speaker(self, head: Head) -> Speech:
        return Speech(head)

    def fault(self, fault: Fault) -> bytes:
        return encode(error(fault))


class Speech:
    """Implements the port `Speaker`."""

    def __init__(self, head: Head) -> None:
        self._head = head

    def begin(self) -> bytes:
        return self._chunk({"role": "assistant", "content": ""})

    def piece(self, text: str) -> bytes:
        return self._chunk({"content": text})

    def end(self, ended: Ended) -> bytes:
        calls = [{"index": index, **_call(one)} for index, one in enumerate(ended.calls)]
        said = self._chunk({"tool_calls": calls}) if calls else b""
        said += self._chunk({}, STOPS.get(ended.stop, "stop"))
        if self._head.usage:
            said += event({**_frame(self._head, "chat.completion.chunk"), "choices": [], "usage": usage(ended.usage)})
        return said + b"data: [DONE]\n\n"

    def fail(self, fault: Fault) -> bytes:
        return event(error(fault)) + b"data: [DONE]\n\n"

    def rest(self) -> bytes:
        return b": waiting\n\n"

    def _chunk(self, delta: dict[str, object], finish: str | None = None) -> bytes:
        first = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return event({**_frame(self._head, "chat.completion.chunk"), "choices": [first]})


def error(fault: Fault) -> dict[str, object]:
    """OpenAI's own words for what went wrong."""
    kinds = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
    kind = kinds.get(fault.status, "server_error" if fault.status >= 500 else "invalid_request_error")
    return {"error": {"message": str(fault), "type": kind, "param": fault.field or None, "code": fault.code or None}}


def usage(used: Usage) -> dict[str, object]:
    read = used.input + used.cache_read + used.cache_write
    return {
        "prompt_tokens": read,
        "completion_tokens": used.output,
        "total_tokens": read + used.output,
        "prompt_tokens_details": {"cached_tokens": used.cache_read},
        "completion_tokens_details": {"reasoning_tokens": used.reasoning},
    }


def _check(given: Body) -> None:
    """Refuse what cannot be done. Raises `Fault`."""
    if given.n not in (None, 1):
        raise Fault(400, "One answer is given to a request: `n` is 1.", field="n")
    if given.logprobs:
        raise Fault(400, "No probabilities are known here.", field="logprobs")
    if given.response_format is not None and given.response_format.type != "text":
        raise Fault(400, "Answers are text: no format can be promised.", field="response_format")


def _line(message: Message) -> Line:
    if message.role == "tool":
        return Line("tool", _text(message), _pictures(message), call=message.tool_call_id)
    calls = tuple(ToolCall(one.id, one.function.name, one.function.arguments) for one in message.tool_calls or ())
    role = "assistant" if message.role == "assistant" else "user"
    return Line(role, _text(message), _pictures(message), calls)


def _text(message: Message) -> str:
    if not isinstance(message.content, list):
        return message.content or ""
    for part in message.content:
        if part.type not in ("text", "image_url", "refusal"):
            raise Fault(400, f"Parts of the type {part.type!r} are not taken: text and image_url.", field="messages")
    return "\n".join(part.text or part.refusal for part in message.content if part.text or part.refusal)


def _pictures(message: Message) -> tuple[str, ...]:
    parts = message.content if isinstance(message.content, list) else ()
    return tuple(part.image_url.url for part in parts if part.image_url is not None)


def _call(call: ToolCall) -> dict[str, object]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _frame(head: Head, kind: str) -> dict[str, object]:
    return {"id": f"chatcmpl-{head.number}", "object": kind, "created": head.at, "model": head.model}
