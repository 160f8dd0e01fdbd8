"""OpenAI's Responses: `/v1/responses`."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from limpet.server.api.asks import Ask, Ended, Fault, Head, Line
from limpet.server.api.chat import error
from limpet.server.api.shapes import choice, encode, event, sampling, tool
from limpet.types.content import ToolCall
from limpet.types.usage import Usage

Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
TAKEN = ("input_text", "output_text", "text", "refusal", "input_image")


class Part(Struct):
    type: str
    text: str = ""
    refusal: str = ""
    image_url: str | None = None


class Item(Struct):
    type: str = "message"
    role: Literal["", "system", "developer", "user", "assistant"] = ""
    content: str | list[Part] | None = None
    call_id: str = ""
    name: str = ""
    arguments: str = "{}"
    output: str | list[Part] | None = None


class Tool(Struct):
    type: str
    name: Name = "tool"
    description: str | None = None
    parameters: dict[str, object] | None = None


class Body(Struct):
    """The fields that mean something here; others are told in the header `X-Limpet-Ignored`."""

    model: str
    input: str | list[Item]
    instructions: str | None = None
    previous_response_id: str | None = None
    stream: bool | None = False
    tools: list[Tool] | None = None
    tool_choice: str | dict[str, object] | None = None
    temperature: float | None = None
    max_output_tokens: int | None = None
    store: bool | None = True
    background: bool | None = False
    user: str | None = None
    metadata: dict[str, str] | None = None


_decode = msgspec.json.Decoder(Body).decode


class Responses:
    """Implements the port `Dialect`."""

    prefix = "resp_"
    fields = Body.__struct_fields__

    def read(self, body: bytes) -> Ask:
        given = _decode(body)
        if given.background:
            raise Fault(400, "Nothing is answered in the background here: `background` is false.", field="background")
        for one in given.tools or ():
            if one.type != "function":
                raise Fault(400, f"Tools of the type {one.type!r} are not known here: function.", field="tools")
        items = [Item(role="user", content=given.input)] if isinstance(given.input, str) else given.input
        said = [_text(one.content) for one in items if one.role in ("system", "developer")]
        return Ask(
            model=given.model,
            lines=tuple(line for item in items for line in _lines(item)),
            system="\n\n".join(filter(None, [given.instructions or "", *said])),
            tools=tuple(tool(one.name, one.description, one.parameters) for one in given.tools or ()),
            choice=choice(given.tool_choice),
            sampling=sampling(given.temperature, given.max_output_tokens, field="max_output_tokens"),
            stream=bool(given.stream),
            session=(given.metadata or {}).get("session", "") or given.user or "",
            previous=given.previous_response_id or "",
            keep=given.store is not False,
        )

    def whole(self, head: Head, ended: Ended) -> bytes:
        return encode(_response(head, ended))

    def speaker(self, head: Head) -> Speech:
        return Speech(head)

    def fault(self, fault: Fault) -> bytes:
        return encode(error(fault))


class Speech:
    """Implements the port `Speaker`: numbered events for each item and its parts."""

    def __init__(self, head: Head) -> None:
        self._head = head
        self._count = -1
        self._text: list[str] = []

    def begin(self) -> bytes:
        begun = _response(self._head, None)
        return self._event("response.created", response=begun) + self._event("response.in_progress", response=begun)

    def piece(self, text: str) -> bytes:
        begun = b""
        if not self._text:
            item: dict[str, object] = {**_message(self._head, "", "in_progress"), "content": []}
            begun = self._event("response.output_item.added", output_index=0, item=item)
            begun += self._part("response.content_part.added", part=_output_text(""))
        self._text.append(text)
        return begun + self._part("response.output_text.delta", delta=text, logprobs=[])

    def end(self, ended: Ended) -> bytes:
        response = _response(self._head, ended)
        said = b""
        if self._text:
            text = "".join(self._text)
            said += self._part("response.output_text.done", text=text, logprobs=[])
            said += self._part("response.content_part.done", part=_output_text(text))
            item = _message(self._head, text, "completed")
            said += self._event("response.output_item.done", output_index=0, item=item)
        for index, call in enumerate(ended.calls, start=bool(self._text)):
            said += self._call(call, index)
        kind = "response.incomplete" if ended.stop == "length" else "response.completed"
        return said + self._event(kind, response=response)

    def fail(self, fault: Fault) -> bytes:
        told = {"code": "rate_limit_exceeded" if fault.status == 429 else "server_error", "message": str(fault)}
        response = {**_response(self._head, None), "status": "failed", "error": told}
        return self._event("response.failed", response=response)

    def rest(self) -> bytes:
        return b": waiting\n\n"

    def _call(self, call: ToolCall, index: int) -> bytes:
        item, place = _function_call(call), {"item_id": f"fc_{call.id}", "output_index": index}
        begun = {**item, "arguments": "", "status": "in_progress"}
        return (
            self._event("response.output_item.added", output_index=index, item=begun)
            + self._event("response.function_call_arguments.delta", **place, delta=call.arguments)
            + self._event("response.function_call_arguments.done", **place, arguments=call.arguments, name=call.name)
            + self._event("response.output_item.done", output_index=index, item=item)
        )

    def _part(self, kind: str, /, **fields: object) -> bytes:
        return self._event(kind, item_id=f"msg_{self._head.number}", output_index=0, content_index=0, **fields)

    def _event(self, kind: str, /, **fields: object) -> bytes:
        self._count += 1
        return event({"type": kind, "sequence_number": self._count, **fields}, name=kind)


def _response(head: Head, ended: Ended | None) -> dict[str, object]:
    output: list[object] = []
    if ended is not None:
        output = [_message(head, ended.text, "completed")] if ended.text else []
        output += map(_function_call, ended.calls)
    cut = ended is not None and ended.stop == "length"
    return {
        "id": f"resp_{head.number}",
        "object": "response",
        "created_at": head.at,
        "status": "in_progress" if ended is None else "incomplete" if cut else "completed",
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "instructions": None,
        "metadata": {},
        "model": head.model,
        "output": output,
        "parallel_tool_calls": True,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "usage": None if ended is None else usage(ended.usage),
    }


def usage(used: Usage) -> dict[str, object]:
    read = used.input + used.cache_read + used.cache_write
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": used.cache_read, "cache_write_tokens": used.cache_write},
        "output_tokens": used.output,
        "output_tokens_details": {"reasoning_tokens": used.reasoning},
        "total_tokens": read + used.output,
    }


def _message(head: Head, text: str, status: str) -> dict[str, object]:
    content = [_output_text(text)]
    return {"id": f"msg_{head.number}", "type": "message", "role": "assistant", "status": status, "content": content}


def _output_text(text: str) -> dict[str, object]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _function_call(call: ToolCall) -> dict[str, object]:
    return {
        "id": f"fc_{call.id}",
        "type": "function_call",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments,
        "status": "completed",
    }


def _lines(item: Item) -> list[Line]:
    match item.type:
        case "message" if item.role in ("user", "assistant"):
            return [Line(item.role, _text(item.content), _pictures(item.content))]
        case "message" if item.role:
            return []  # instructions, which are told apart
        case "function_call":
            return [Line("assistant", calls=(ToolCall(item.call_id, item.name, item.arguments),))]
        case "function_call_output":
            return [Line("tool", _text(item.output), _pictures(item.output), call=item.call_id)]
        case "reasoning":
            return []  # another model's, which ours has no use for
        case _:
            raise Fault(400, f"Items of the type {item.type!r} are not taken.", field="input")


def _text(content: str | list[Part] | None) -> str:
    if not isinstance(content, list):
        return content or ""
    for part in content:
        if part.type not in TAKEN:
            raise Fault(400, f"Parts of the type {part.type!r} are not taken.", field="input")
    return "\n".join(part.text or part.refusal for part in content if part.text or part.refusal)


def _pictures(content: str | list[Part] | None) -> tuple[str, ...]:
    return tuple(part.image_url for part in content if part.image_url) if isinstance(content, list) else ()
