"""Anthropic Messages: requests out, events in, one stream in the middle."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import msgspec
from msgspec import Raw, Struct

from limpet.errors import UpstreamError
from limpet.llm.assemble import Assembler, cost_of
from limpet.llm.cache_marks import cache_control, marked, short_writes
from limpet.llm.http import Answer
from limpet.llm.names import NO_TEXT, call_id, tool_name
from limpet.llm.pictures import data_of, note_of
from limpet.llm.prefix import PrefixCache, body_of, to_json
from limpet.llm.schema import Offered, offer_of
from limpet.llm.unicode import decode_json
from limpet.llm.wire.service import Service
from limpet.types.content import AssistantBlock, Image, ResultBlock, Text, Thinking, ToolCall, UserBlock
from limpet.types.event import Done, ModelEvent
from limpet.types.message import (
    AssistantMessage,
    Message,
    Request,
    Sampling,
    StopReason,
    ToolMessage,
    UserMessage,
)
from limpet.types.ports import Blobs
from limpet.types.profile import Profile
from limpet.types.usage import Usage

VERSION = "2023-06-01"
_DEFAULT_OUTPUT = 8_192
_MAX_OUTPUT = 32_000
_BUDGETS = {"low": 2_048, "medium": 8_192, "high": 24_576}
_STOPS: dict[str, StopReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
Wire = dict[str, object]


# --- out ------------------------------------------------------------------------------------------------------------


def encode_request(request: Request, profile: Profile, *, prefix: PrefixCache, blobs: Blobs | None) -> list[bytes]:
    """The body of a request, in parts, with the marks of `llm/cache_marks.py`."""
    mark = cache_control(profile, request.rhythm)

    def encode(group: Sequence[Message], last: bool) -> bytes:
        blocks = [block for message in group for block in _blocks(message, profile, blobs=blobs)]
        if not blocks:
            return b""
        role = "assistant" if _role(group[0], profile) == "assistant" else "user"
        if mark and last and role == "user":
            for place in marked(len(blocks)):
                blocks[place] = {**blocks[place], "cache_control": mark}
        return to_json({"role": role, "content": blocks})

    pieces = prefix.encode(
        request.session, request.messages, group=lambda message: _role(message, profile), encode=encode
    )
    head: Wire = {"model": profile.model, "max_tokens": _max_tokens(request.sampling, profile)}
    if profile.tools and (offered := offer_of(request.tools, profile).tools):
        tools = [_tool(tool) for tool in offered]
        if mark:
            tools[-1] = {**tools[-1], "cache_control": mark}
        head["tools"] = tools
    if request.system.strip():
        block: Wire = {"type": "text", "text": request.system}
        head["system"] = [{**block, "cache_control": mark}] if mark else [block]
    tail: Wire = {"stream": True, **_sampling(request.sampling, profile)}
    if request.tool_choice == "none" and "tools" in head:
        tail["tool_choice"] = {"type": "none"}
    return body_of(head, pieces, key="messages", tail=tail, refused=profile.refused)


def _tool(tool: Offered) -> Wire:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}


def _max_tokens(sampling: Sampling, profile: Profile) -> int:
    most = min(profile.max_output or _DEFAULT_OUTPUT, _MAX_OUTPUT)
    wanted = sampling.max_tokens or most
    if profile.thinking == "budget" and sampling.thinking in _BUDGETS:
        wanted = max(wanted, _BUDGETS[sampling.thinking] + 1_024)
    return min(wanted, profile.max_output) if profile.max_output else wanted


def _sampling(sampling: Sampling, profile: Profile) -> Wire:
    fields: Wire = {}
    level = sampling.thinking
    thinks = level in _BUDGETS and bool(profile.thinking)
    if sampling.temperature is not None and profile.temperature and not thinks:
        fields["temperature"] = sampling.temperature
    if level == "off" and profile.thinking in ("budget", "adaptive"):
        fields["thinking"] = {"type": "disabled"}
    elif level == "off" and profile.thinking == "between_tools":
        fields["thinking"] = {"type": "between_tools"}
    elif level in _BUDGETS and profile.thinking in ("adaptive", "between_tools", "effort_only"):
        fields["output_config"] = {"effort": level}
        if profile.thinking != "effort_only":
            fields["thinking"] = {"type": "adaptive"}
    elif level in _BUDGETS and profile.thinking == "budget":
        budget = min(_BUDGETS[level], _max_tokens(sampling, profile) - 1)
        fields["thinking"] = {"type": "enabled", "budget_tokens": max(1_024, budget)}
    return fields


def _role(message: Message, profile: Profile) -> str:
    """The side a message is grouped with; an answer of which nothing can be sent lets its neighbours meet."""
    if isinstance(message, AssistantMessage) and _assistant(message, profile):
        return "assistant"
    return "user"


def _blocks(message: Message, profile: Profile, *, blobs: Blobs | None) -> list[Wire]:
    match message:
        case AssistantMessage():
            return _assistant(message, profile)
        case UserMessage():
            content = [*message.content, Text(message.runtime)] if message.runtime else message.content
            return _content(content, profile, blobs=blobs) or [{"type": "text", "text": NO_TEXT}]
        case ToolMessage():
            result: Wire = {"type": "tool_result", "tool_use_id": call_id(message.call_id)}
            if content := _content(message.content, profile, blobs=blobs):
                result["content"] = content
            if message.is_error:
                result["is_error"] = True
            return [result]


def _content(blocks: Sequence[UserBlock | ResultBlock], profile: Profile, *, blobs: Blobs | None) -> list[Wire]:
    found: list[Wire] = []
    for block in blocks:
        if isinstance(block, Text) and block.text.strip():
            found.append({"type": "text", "text": block.text})
        elif isinstance(block, Image):
            data = data_of(block, blobs, allowed=profile.images)
            if data is None:
                found.append({"type": "text", "text": note_of(block, allowed=profile.images)})
            else:
                source = {"type": "base64", "media_type": block.mime, "data": data}
                found.append({"type": "image", "source": source})
    return found


def _assistant(message: AssistantMessage, profile: Profile) -> list[Wire]:
    own = message.producer == profile.producer
    blocks = [wire for block in message.content if (wire := _block(block, own=own))]
    if all(block["type"] in ("thinking", "redacted_thinking") for block in blocks):
        return []
    return blocks


def _block(block: AssistantBlock, *, own: bool) -> Wire | None:
    """One block of an answer. Reasoning goes back, unchanged, only to the model that made it."""
    match block:
        case Text(text) if text.strip():
            return {"type": "text", "text": text}
        case Thinking(redacted=redacted) if own and redacted:
            return {"type": "redacted_thinking", "data": redacted}
        case Thinking(text, signature) if own and signature:
            return {"type": "thinking", "thinking": text, "signature": signature}
        case ToolCall():
            arguments = Raw(block.arguments.encode("utf-8", "replace"))
            return {"type": "tool_use", "id": call_id(block.id), "name": tool_name(block.name), "input": arguments}
        case _:
            return None


# --- in -------------------------------------------------------------------------------------------------------------


class _Written(Struct):
    ephemeral_5m_input_tokens: int = 0


class _Usage(Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_creation: _Written | None = None


class _Message(Struct):
    usage: _Usage | None = None


class _Content(Struct):
    type: str = ""
    id: str = ""
    name: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    data: str = ""
    input: object = None


class _Delta(Struct):
    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    partial_json: str = ""
    stop_reason: str | None = None


class _Event(Struct):
    type: str = ""
    index: int = 0
    message: _Message | None = None
    content_block: _Content | None = None
    delta: _Delta | None = None
    usage: _Usage | None = None
    error: object = None


def usage_of(wire: _Usage, profile: Profile) -> Usage:
    usage = Usage(
        input=wire.input_tokens or 0,
        output=wire.output_tokens or 0,
        cache_read=wire.cache_read_input_tokens or 0,
        cache_write=wire.cache_creation_input_tokens or 0,
    )
    short = wire.cache_creation is not None and wire.cache_creation.ephemeral_5m_input_tokens > 0
    return cost_of(usage, short_writes(profile) if short else profile)


class _Reader:
    """Feeds events to the assembler and remembers what only the end needs."""

    def __init__(self, profile: Profile, assembler: Assembler) -> None:
        self.assembler = assembler
        self.stop = ""
        self.ended = False
        self.usage = _Usage()
        self._provider = profile.provider

    def event(self, data: bytes) -> tuple[list[ModelEvent], bool]:
        """The events of one event, and whether it held content. Raises what an error event means."""
        try:
            event = decode_json(data, _Event)
        except msgspec.DecodeError as error:
            what = f"the answer is not readable ({error}): {data[:120].decode('utf-8', 'replace')}"
            raise UpstreamError(what, provider=self._provider) from error
        if event.type == "error" or event.error:
            from limpet.llm.classify import error_inside  # an error in a stream is rare

            raise error_inside(event.error, provider=self._provider)
        match event.type:
            case "message_start" if event.message is not None and event.message.usage is not None:
                self._count(event.message.usage)
            case "content_block_start" if event.content_block is not None:
                return self._begin(event.index, event.content_block)
            case "content_block_delta" if event.delta is not None:
                return self._more(event.index, event.delta)
            case "message_delta":
                self.stop = (event.delta.stop_reason if event.delta else None) or self.stop
                if event.usage is not None:
                    self._count(event.usage)
            case "message_stop":
                self.ended = True
            case _:
                pass
        return [], False

    def _begin(self, index: int, block: _Content) -> tuple[list[ModelEvent], bool]:
        match block.type:
            case "text":
                return self.assembler.text(block.text), bool(block.text)
            case "thinking":
                return self.assembler.thinking(block.thinking, signature=block.signature, begin=True), True
            case "redacted_thinking":
                return self.assembler.thinking("", redacted=block.data, begin=True), True
            case "tool_use":
                self.assembler.call(index=index, id=block.id, name=block.name, arguments=block.input or None)
                return [], True
            case _:
                return [], False

    def _more(self, index: int, delta: _Delta) -> tuple[list[ModelEvent], bool]:
        match delta.type:
            case "text_delta":
                return self.assembler.text(delta.text), bool(delta.text)
            case "thinking_delta":
                return self.assembler.thinking(delta.thinking), bool(delta.thinking)
            case "signature_delta":
                return self.assembler.thinking("", signature=delta.signature), True
            case "input_json_delta":
                self.assembler.call(index=index, id="", name="", arguments=delta.partial_json)
                return [], bool(delta.partial_json)
            case _:
                return [], False

    def _count(self, usage: _Usage) -> None:
        """Later counts replace earlier ones; what a later event leaves out stays."""
        for name in usage.__struct_fields__:
            value: int | _Written | None = getattr(usage, name)
            if value is not None:
                setattr(self.usage, name, value)


# --- the stream -----------------------------------------------------------------------------------------------------


class Anthropic(Service):
    """A `Model` at Anthropic or a service that speaks its Messages API. `profile.base_url` ends before `/v1`."""

    key_header = "x-api-key"

    def _encode(self, request: Request) -> list[bytes]:
        return encode_request(request, self._profile, prefix=self._prefix, blobs=self._blobs)

    async def _target(self, body: Sequence[bytes]) -> tuple[str, dict[str, str]]:
        url = self._profile.base_url.rstrip("/").removesuffix("/v1") + "/v1/messages"
        return url, {"anthropic-version": VERSION, **self._headers}

    async def _read(self, answer: Answer, request: Request) -> AsyncGenerator[ModelEvent, None]:
        reader = _Reader(self._profile, Assembler(self._profile, request.tools))
        answer.tally.count = lambda: reader.assembler.used(usage_of(reader.usage, self._profile))
        while not reader.ended and (events := await answer.events()):
            for event in events:
                found, content = reader.event(event.data)
                if content:
                    answer.progress()
                if reader.stop:
                    answer.finished()
                for item in found:
                    yield item
                if reader.ended:
                    break
        if not reader.ended and not reader.stop:
            why = "the answer was cut off" if not reader.assembler.empty else "the answer is empty"
            raise UpstreamError(why, provider=self._profile.provider)
        await answer.drain()
        last, message = reader.assembler.finish(_STOPS.get(reader.stop, "stop"), usage_of(reader.usage, self._profile))
        for item in last:
            yield item
        yield Done(message)
