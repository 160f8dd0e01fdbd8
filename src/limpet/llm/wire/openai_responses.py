"""OpenAI Responses: requests out, events in, one stream in the middle. Nothing is stored at the service.

Reasoning travels as items with encrypted content and goes back, as it came, to the model that made it: the item is
kept whole in `Thinking.signature`, the ids of messages and calls in the signatures of those blocks.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import msgspec
from msgspec import Raw, Struct, field

from limpet.errors import UpstreamError
from limpet.llm.assemble import Assembler, cost_of
from limpet.llm.http import Answer
from limpet.llm.names import NO_TEXT, address_of, chat_id, tool_name
from limpet.llm.pictures import data_of, note_of
from limpet.llm.prefix import PrefixCache, body_of, to_json
from limpet.llm.schema import Offered, offer_of
from limpet.llm.unicode import clean_json, decode_json
from limpet.llm.wire.service import Service
from limpet.types.content import Image, ResultBlock, Text, Thinking, ToolCall, UserBlock
from limpet.types.event import Done, ModelEvent
from limpet.types.message import AssistantMessage, Message, Request, Sampling, StopReason, ToolMessage, UserMessage
from limpet.types.ports import Blobs
from limpet.types.profile import Profile
from limpet.types.usage import Usage

MIN_OUTPUT = 16
Wire = dict[str, object]


# --- out ------------------------------------------------------------------------------------------------------------


def encode_request(request: Request, profile: Profile, *, prefix: PrefixCache, blobs: Blobs | None) -> list[bytes]:
    """The body of a request, in parts. What is the same as last time in the session is not encoded again."""

    def encode(group: Sequence[Message], _last: bool) -> bytes:
        return b",".join(to_json(item) for message in group for item in _items(message, profile, blobs=blobs))

    pieces = prefix.encode(
        request.session, request.messages, group=lambda message: type(message).__name__, encode=encode
    )
    head: Wire = {"model": profile.model}
    if request.system:
        head["instructions"] = request.system
    tail: Wire = {"stream": True, "store": False}
    if profile.tools and (offered := offer_of(request.tools, profile).tools):
        head["tools"] = [_tool(tool) for tool in offered]
        if request.tool_choice == "none":
            tail["tool_choice"] = "none"
        if not profile.parallel_calls:
            tail["parallel_tool_calls"] = False
    if profile.cache_key and request.session:
        tail["prompt_cache_key"] = (request.cache_key or request.session)[:64]
    tail.update(_sampling(request.sampling, profile))
    return body_of(head, pieces, key="input", tail=tail, refused=profile.refused)


def _tool(tool: Offered) -> Wire:
    """`strict` is always said: left out, this API makes it true."""
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": tool.strict,
    }


def _sampling(sampling: Sampling, profile: Profile) -> Wire:
    fields: Wire = {}
    if profile.thinking:
        fields["include"] = ["reasoning.encrypted_content"]
    if sampling.temperature is not None and profile.temperature:
        fields["temperature"] = sampling.temperature
    if sampling.max_tokens is not None:
        limit = min(sampling.max_tokens, profile.max_output) if profile.max_output else sampling.max_tokens
        fields["max_output_tokens"] = max(MIN_OUTPUT, limit)
    if sampling.thinking is not None and profile.thinking:
        off = sampling.thinking == "off"
        effort = profile.efforts.get(sampling.thinking, "none" if off else sampling.thinking)
        fields["reasoning"] = {"effort": effort} if off else {"effort": effort, "summary": "auto"}
    return fields


def _items(message: Message, profile: Profile, *, blobs: Blobs | None) -> Sequence[Wire | Raw]:
    match message:
        case UserMessage():
            blocks = [*message.content, Text(message.runtime)] if message.runtime else message.content
            parts = _parts(blocks, profile, blobs=blobs) or [{"type": "input_text", "text": NO_TEXT}]
            return [{"role": "user", "content": parts}]
        case ToolMessage():
            output = _parts(message.content, profile, blobs=blobs)
            item: Wire = {"type": "function_call_output", "call_id": chat_id(message.call_id, profile.id_length)}
            if any(part["type"] != "input_text" for part in output):
                return [{**item, "output": output}]
            return [{**item, "output": "\n".join(str(part["text"]) for part in output) or "(no output)"}]
        case AssistantMessage():
            return _answer(message, profile)


def _parts(blocks: Sequence[UserBlock | ResultBlock], profile: Profile, *, blobs: Blobs | None) -> list[Wire]:
    parts: list[Wire] = []
    for block in blocks:
        if isinstance(block, Text) and block.text.strip():
            parts.append({"type": "input_text", "text": block.text})
        elif isinstance(block, Image):
            data = data_of(block, blobs, allowed=profile.images)
            if data is None:
                parts.append({"type": "input_text", "text": note_of(block, allowed=profile.images)})
            else:
                parts.append({"type": "input_image", "image_url": f"data:{block.mime};base64,{data}"})
    return parts


def _answer(message: AssistantMessage, profile: Profile) -> list[Wire | Raw]:
    """The items of an answer. Ids name items that need their reasoning: they go along only where all of it does."""
    thoughts = [block for block in message.content if isinstance(block, Thinking)]
    own = message.producer == profile.producer and all(block.signature for block in thoughts)
    items: list[Wire | Raw] = []
    for block in message.content:
        match block:
            case Thinking(signature=signature) if own:
                items.append(Raw(signature.encode("utf-8", "replace")))
            case Text(text, signature) if text.strip():
                content = {"type": "output_text", "text": text, "annotations": ()}
                item: Wire = {"type": "message", "role": "assistant", "content": [content]}
                items.append({**item, "id": signature, "status": "completed"} if own and signature else item)
            case ToolCall():
                items.append(_call(block, profile, own=own))
            case _:
                pass
    while items and isinstance(items[-1], Raw):  # reasoning must be followed by what it led to
        items.pop()
    return items


def _call(call: ToolCall, profile: Profile, *, own: bool) -> Wire:
    item: Wire = {
        "type": "function_call",
        "call_id": chat_id(call.id, profile.id_length),
        "name": tool_name(call.name),
        "arguments": call.arguments,
    }
    return {**item, "id": call.signature} if own and call.signature else item


# --- in -------------------------------------------------------------------------------------------------------------


class _InputDetails(Struct):
    cached_tokens: int | None = None


class _OutputDetails(Struct):
    reasoning_tokens: int | None = None


class _Usage(Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _InputDetails | None = None
    output_tokens_details: _OutputDetails | None = None


class _Part(Struct):
    type: str = ""
    text: str | None = None
    refusal: str | None = None


class _Item(Struct):
    type: str = ""
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: object = None
    content: list[_Part] | None = None
    summary: list[_Part] | None = None
    encrypted_content: str | None = None


class _Incomplete(Struct):
    reason: str | None = None


class _Response(Struct):
    status: str | None = None
    error: object = None
    incomplete_details: _Incomplete | None = None
    output: list[object] | None = None
    usage: _Usage | None = None


class _Event(Struct):
    type: str = ""
    output_index: int = 0
    delta: object = None
    arguments: str | None = None
    item: _Item | None = None
    response: _Response | None = None
    error: object = None
    kind: str | None = field(default=None, name="object")


def usage_of(wire: _Usage, profile: Profile) -> Usage:
    cached = (wire.input_tokens_details or _InputDetails()).cached_tokens or 0
    usage = Usage(
        input=max(0, (wire.input_tokens or 0) - cached),
        output=wire.output_tokens or 0,
        cache_read=cached,
        reasoning=(wire.output_tokens_details or _OutputDetails()).reasoning_tokens or 0,
    )
    return cost_of(usage, profile)


class _Reader:
    """Feeds events to the assembler and remembers what only the end needs.

    `shown` are the items of which deltas came: an item that comes whole is taken whole.
    """

    def __init__(self, profile: Profile, assembler: Assembler) -> None:
        self.assembler = assembler
        self.ended = False
        self.stop: StopReason = "stop"
        self.usage = _Usage()
        self._provider = profile.provider
        self._shown: set[int] = set()
        self._begun: set[int] = set()
        self._finished: set[int] = set()

    def event(self, data: bytes) -> tuple[list[ModelEvent], bool]:
        """The events of one event, and whether it held content. Raises what a failure means."""
        try:
            event = decode_json(data, _Event)
            if event.kind == "response":  # a server that does not stream
                event = _Event(type="response.completed", response=decode_json(data, _Response))
        except msgspec.DecodeError as error:
            what = f"the answer is not readable ({error}): {data[:120].decode('utf-8', 'replace')}"
            raise UpstreamError(what, provider=self._provider) from error
        kind = event.type
        if kind == "response.output_text.delta" and isinstance(event.delta, str):
            self._shown.add(event.output_index)
            return self.assembler.text(event.delta), bool(event.delta)
        if kind == "response.function_call_arguments.delta" and isinstance(event.delta, str):
            self._shown.add(event.output_index)
            self.assembler.call(index=event.output_index, id="", name="", arguments=event.delta)
            return [], bool(event.delta)
        if kind in ("error", "response.failed") or event.error:
            self._fail(data, event)
        if kind in ("response.completed", "response.incomplete") and event.response is not None:
            return self._end(event.response), True
        return self._rest(event, data)

    def _rest(self, event: _Event, data: bytes) -> tuple[list[ModelEvent], bool]:
        at = event.output_index
        match event.type:
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._shown.add(at)
                return self.assembler.thinking(str(event.delta or "")), True
            case "response.reasoning_summary_part.added" if at in self._shown:
                return self.assembler.thinking("\n\n"), True
            case "response.refusal.delta":
                self._shown.add(at)
                self.stop = "refusal"
                return self.assembler.text(str(event.delta or "")), True
            case "response.output_item.added" if event.item is not None:
                return self._begin(at, event.item), True
            case "response.output_item.done" if event.item is not None:
                raw = decode_json(data, dict[str, object]).get("item")
                return self._whole(at, event.item, raw=raw), True
            case _:
                return [], False

    def _begin(self, at: int, item: _Item) -> list[ModelEvent]:
        self._begun.add(at)
        if item.type == "reasoning":
            return self.assembler.thinking("", begin=True)
        if item.type == "function_call":
            id, name = item.call_id or item.id or "", item.name or ""
            self.assembler.call(index=at, id=id, name=name, arguments=None, signature=item.id or "")
        return []

    def _whole(self, at: int, item: _Item, *, raw: object) -> list[ModelEvent]:
        """An item at its end: its ids, and what of it did not come in pieces."""
        if at in self._finished:
            return []
        self._finished.add(at)
        events = [] if at in self._begun else self._begin(at, item)
        fresh = at not in self._shown
        match item.type:
            case "reasoning":
                parts = item.summary or item.content or []
                text = "\n\n".join(part.text or "" for part in parts) if fresh else ""
                kept = clean_json(raw) if item.encrypted_content else ""
                events += self.assembler.thinking(text, signature=_without_status(kept))
            case "message":
                for part in item.content or () if fresh else ():
                    self.stop = "refusal" if part.refusal else self.stop
                    events += self.assembler.text(part.text or part.refusal or "")
                self.assembler.sign(item.id or "")
            case "function_call" if fresh:
                self.assembler.call(index=at, id="", name="", arguments=item.arguments)
            case _:
                pass
        return events

    def _end(self, response: _Response) -> list[ModelEvent]:
        self.ended = True
        self.usage = response.usage or self.usage
        events: list[ModelEvent] = []
        for at, item in enumerate(response.output or ()):
            events += self._whole(at, msgspec.convert(item, _Item), raw=item)
        if response.status == "failed" or response.error:
            self._fail(b"", _Event(response=response))
        if response.status == "incomplete" or response.incomplete_details is not None:
            reason = (response.incomplete_details or _Incomplete()).reason
            self.stop = "refusal" if reason == "content_filter" else "length"
        return events

    def _fail(self, data: bytes, event: _Event) -> None:
        from limpet.llm.classify import error_inside  # an error in a stream is rare

        inside = event.response.error if event.response is not None else None
        said = event.error or inside or (decode_json(data, dict[str, object]) if event.type == "error" else None)
        raise error_inside(said or {"message": "the response failed"}, provider=self._provider)


def _without_status(item: str) -> str:
    """An item as input takes it: `status` is of the output alone."""
    if not item:
        return ""
    fields = msgspec.json.decode(item, type=dict[str, object])
    return clean_json({key: value for key, value in fields.items() if key != "status" and value is not None})


# --- the stream -----------------------------------------------------------------------------------------------------


class OpenAIResponses(Service):
    """A `Model` at a service that speaks the Responses API. `profile.base_url` ends before `/responses`."""

    def _encode(self, request: Request) -> list[bytes]:
        return encode_request(request, self._profile, prefix=self._prefix, blobs=self._blobs)

    async def _target(self, body: Sequence[bytes]) -> tuple[str, dict[str, str]]:
        return address_of(self._profile, "/responses"), self._headers

    async def _read(self, answer: Answer, request: Request) -> AsyncGenerator[ModelEvent, None]:
        reader = _Reader(self._profile, Assembler(self._profile, request.tools))
        answer.tally.count = lambda: reader.assembler.used(usage_of(reader.usage, self._profile))
        while not reader.ended and (events := await answer.events()):
            for event in events:
                if event.data.strip() == b"[DONE]":
                    continue
                found, content = reader.event(event.data)
                if content:
                    answer.progress()
                for item in found:
                    yield item
                if reader.ended:
                    break
        if not reader.ended:
            why = "the answer was cut off" if not reader.assembler.empty else "the answer is empty"
            raise UpstreamError(why, provider=self._profile.provider)
        await answer.drain()
        last, message = reader.assembler.finish(reader.stop, usage_of(reader.usage, self._profile))
        for item in last:
            yield item
        yield Done(message)
