"""OpenAI Chat Completions and everything compatible with it: requests out, chunks in, one stream in the middle."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import msgspec

from limpet.errors import UpstreamError
from limpet.llm.assemble import Assembler
from limpet.llm.cache_marks import cache_control, marked
from limpet.llm.http import Answer
from limpet.llm.names import NO_TEXT, address_of, chat_id, tool_name
from limpet.llm.pictures import data_of, note_of
from limpet.llm.prefix import PrefixCache, body_of, to_json
from limpet.llm.schema import Offered, offer_of
from limpet.llm.unicode import decode_json
from limpet.llm.wire.openai_chat_shape import Chunk, Delta, Function, Part, WireUsage, usage_of
from limpet.llm.wire.service import Service
from limpet.types.content import Image, ResultBlock, Text, Thinking, ToolCall, UserBlock
from limpet.types.event import Done, ModelEvent
from limpet.types.message import (
    AssistantMessage,
    Message,
    Request,
    Sampling,
    StopReason,
    ThinkingLevel,
    ToolMessage,
    UserMessage,
)
from limpet.types.ports import Blobs
from limpet.types.profile import Profile
from limpet.types.tool import ToolSpec

_STOPS: dict[str, StopReason] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "refusal",
    "refusal": "refusal",
}


# --- out ------------------------------------------------------------------------------------------------------------


def encode_request(request: Request, profile: Profile, *, prefix: PrefixCache, blobs: Blobs | None) -> list[bytes]:
    """The body of a request, in parts. What is the same as last time in the session is not encoded again."""

    mark = cache_control(profile, request.rhythm) if profile.cache_marks else {}

    def encode(group: Sequence[Message], last: bool) -> bytes:
        wire = [item for message in group for item in _message(message, profile, blobs=blobs)]
        wire += _result_pictures(group, profile, blobs=blobs)
        if mark and last and wire:
            for place in marked(len(wire)):
                wire[place] = _marked(wire[place], mark)
        return b",".join(map(to_json, wire))

    pieces = prefix.encode(
        request.session, request.messages, group=lambda message: type(message).__name__, encode=encode
    )
    if request.system:
        system: dict[str, object] = {"role": "system", "content": request.system}
        pieces.insert(0, to_json(_marked(system, mark) if mark else system))
    head: dict[str, object] = {"model": profile.model}
    tail: dict[str, object] = {**profile.extra, "stream": profile.streaming}
    if profile.streaming and profile.stream_usage:
        tail["stream_options"] = {"include_usage": True}
    if profile.tools and (offered := offer_of(request.tools, profile).tools):
        head["tools"] = [_tool(tool) for tool in offered]
        if request.tool_choice == "none":
            tail["tool_choice"] = "none"
        if not profile.parallel_calls:
            tail["parallel_tool_calls"] = False
    if profile.cache_key and request.session:
        tail["prompt_cache_key"] = request.cache_key or request.session
    tail.update(_sampling(request.sampling, profile))
    if "tools" in head and profile.effort_with_tools != "free":
        tail.pop("reasoning_effort", None)
        if profile.effort_with_tools == "none":
            tail["reasoning_effort"] = "none"
    return body_of(head, pieces, key="messages", tail=tail, refused=profile.refused)


def _marked(message: dict[str, object], mark: dict[str, object]) -> dict[str, object]:
    """`message` with `mark` at its last text part; it stays as it is where it has no text."""
    content = message.get("content")
    whole: list[dict[str, object]] = [{"type": "text", "text": content}]
    parts = whole if isinstance(content, str) else msgspec.convert(content or [], list[dict[str, object]])
    for place in reversed(range(len(parts))):
        if parts[place].get("type") == "text":
            parts[place] = {**parts[place], "cache_control": mark}
            return {**message, "content": parts}
    return message


def _tool(tool: Offered) -> dict[str, object]:
    function: dict[str, object] = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": {**function, "strict": True} if tool.strict else function}


def _sampling(sampling: Sampling, profile: Profile) -> dict[str, object]:
    fields: dict[str, object] = {}
    if sampling.temperature is not None and profile.temperature:
        fields["temperature"] = sampling.temperature
    if sampling.max_tokens is not None:
        limit = min(sampling.max_tokens, profile.max_output) if profile.max_output else sampling.max_tokens
        fields[profile.token_parameter] = limit
    if sampling.thinking is not None:
        fields.update(_thinking(sampling.thinking, profile))
    return fields


def _thinking(level: ThinkingLevel, profile: Profile) -> dict[str, object]:
    """The fields that ask for so much reasoning. A switch is joined by an effort where `efforts` names it."""
    on = level != "off"
    fields: dict[str, object] = {}
    match profile.thinking:
        case "toggle" | "toggle_adaptive":
            kind = "enabled" if profile.thinking == "toggle" else "adaptive"
            fields["thinking"] = {"type": kind if on else "disabled"}
        case "switch":
            fields["enable_thinking"] = on
        case "reasoning_switch":
            fields["reasoning"] = {"enabled": on}
        case "openrouter":
            return {"reasoning": {"effort": level} if on else {"enabled": False}}
        case "template":
            return {"chat_template_kwargs": {"enable_thinking": on}}
        case "effort":
            pass
        case _:
            return {}
    usual = "" if fields else "none" if level == "off" else level
    if effort := profile.efforts.get(level, usual):
        fields["reasoning_effort"] = effort
    return fields


def _message(message: Message, profile: Profile, *, blobs: Blobs | None) -> list[dict[str, object]]:
    match message:
        case UserMessage():
            return [{"role": "user", "content": _user_content(message, profile, blobs=blobs)}]
        case AssistantMessage():
            return _assistant(message, profile)
        case ToolMessage():
            text = _text_of(message.content) or "(no output)"
            id = chat_id(message.call_id, profile.id_length)
            return [{"role": "tool", "tool_call_id": id, "content": text}]


def _user_content(message: UserMessage, profile: Profile, *, blobs: Blobs | None) -> str | list[dict[str, object]]:
    blocks = [*message.content, Text(message.runtime)] if message.runtime else list(message.content)
    parts = _parts(blocks, profile, blobs=blobs)
    if all(part["type"] == "text" for part in parts):
        return "\n\n".join(str(part["text"]) for part in parts) or NO_TEXT
    return parts


def _parts(blocks: Sequence[UserBlock], profile: Profile, *, blobs: Blobs | None) -> list[dict[str, object]]:
    parts: list[dict[str, object]] = []
    for block in blocks:
        if isinstance(block, Text):
            if block.text.strip():
                parts.append({"type": "text", "text": block.text})
        elif isinstance(block, Image):
            data = data_of(block, blobs, allowed=profile.images)
            if data is None:
                parts.append({"type": "text", "text": note_of(block, allowed=profile.images)})
            else:
                parts.append({"type": "image_url", "image_url": {"url": f"data:{block.mime};base64,{data}"}})
    return parts


def _assistant(message: AssistantMessage, profile: Profile) -> list[dict[str, object]]:
    own = message.producer == profile.producer
    calls = [_call(call, profile, own=own) for call in message.calls]
    wire: dict[str, object] = {"role": "assistant", "content": message.text if message.text.strip() else None}
    if not calls and wire["content"] is None:
        return []
    thinking = "".join(block.text for block in message.content if isinstance(block, Thinking)) if own else ""
    if (profile.reasoning_echo == "always" and calls) or (profile.reasoning_echo != "none" and thinking):
        text = thinking or profile.reasoning_pad
        parts = [{"type": "reasoning.text", "text": text}] if text else []
        wire[profile.reasoning_field] = parts if profile.reasoning_field == "reasoning_details" else text
    if calls:
        wire["tool_calls"] = calls
    return [wire]


def _call(call: ToolCall, profile: Profile, *, own: bool) -> dict[str, object]:
    function = {"name": tool_name(call.name), "arguments": call.arguments}
    wire: dict[str, object] = {
        "id": chat_id(call.id, profile.id_length),
        "type": "function",
        "function": function,
    }
    signature = (call.signature if own else "") or (not own and profile.call_signature)
    if signature:  # Gemini behind this API
        wire["extra_content"] = {"google": {"thought_signature": signature}}
    return wire


def _text_of(content: Sequence[ResultBlock]) -> str:
    return "\n".join(block.text for block in content if isinstance(block, Text) and block.text)


def _result_pictures(group: Sequence[Message], profile: Profile, *, blobs: Blobs | None) -> list[dict[str, object]]:
    """Tool messages hold no pictures: those of a batch follow in one user message."""
    parts: list[dict[str, object]] = []
    for message in group:
        if isinstance(message, ToolMessage) and (images := [b for b in message.content if isinstance(b, Image)]):
            parts.append({"type": "text", "text": f"Images from the result of {message.name} ({message.call_id}):"})
            parts += _parts(images, profile, blobs=blobs)
    return [{"role": "user", "content": parts}] if parts else []


# --- in -------------------------------------------------------------------------------------------------------------


class _Reader:
    """Feeds chunks to the assembler and remembers what only the end needs."""

    def __init__(self, profile: Profile, tools: tuple[ToolSpec, ...]) -> None:
        self.assembler = Assembler(profile, tools)
        self.stop = ""
        self.refused = False
        self.usage = WireUsage()
        self._provider = profile.provider

    def chunk(self, data: bytes) -> tuple[list[ModelEvent], bool]:
        """The events of one chunk, and whether it held content. Raises what an error object means."""
        try:
            chunk = decode_json(data, Chunk)
        except msgspec.DecodeError as error:
            what = f"the answer is not readable ({error}): {data[:120].decode('utf-8', 'replace')}"
            raise UpstreamError(what, provider=self._provider) from error
        if chunk.error or chunk.kind == "error":
            from limpet.llm.classify import error_inside  # an error in a stream is rare

            raise error_inside(chunk.error or {"message": chunk.message}, provider=self._provider)
        if chunk.usage is not None:
            self.usage = chunk.usage
        events: list[ModelEvent] = []
        content = False
        for choice in chunk.choices or ():
            if choice.index == 0:
                delta = choice.delta or choice.message
                if delta is not None:
                    content |= self._delta(delta, events)
                self.stop = choice.finish_reason or self.stop
        return events, content

    def _delta(self, delta: Delta, events: list[ModelEvent]) -> bool:
        reasoning = delta.reasoning_content or delta.reasoning
        if not reasoning and delta.reasoning_details:
            reasoning = "".join(part.text or "" for part in delta.reasoning_details)
        if reasoning:
            events += self.assembler.thinking(reasoning)
        texts = [delta.content] if isinstance(delta.content, str) else []
        for part in delta.content if isinstance(delta.content, list) else ():
            if part.type == "thinking":
                events += self.assembler.thinking(_thinking_text(part.thinking))
            elif part.text:
                texts.append(part.text)
        if delta.refusal:
            texts.append(delta.refusal)
            self.refused = True
        for text in texts:
            events += self.assembler.text(text) if text else []
        content = bool(reasoning or any(texts))
        for piece in delta.tool_calls or ():
            function = piece.function or Function()
            content = content or bool(piece.id or function.name or function.arguments)
            self.assembler.call(
                index=piece.index,
                id=piece.id or "",
                name=function.name or "",
                arguments=function.arguments,
                signature=piece.extra_content.signature if piece.extra_content is not None else "",
            )
        return content


def _thinking_text(value: object) -> str:
    """Mistral sends reasoning as a text or as a list of text parts."""
    if isinstance(value, str):
        return value
    return "".join(part.text or "" for part in msgspec.convert(value or [], list[Part]))


# --- the stream -----------------------------------------------------------------------------------------------------


class OpenAIChat(Service):
    """A `Model` at one Chat Completions service. `key` may be empty for local servers."""

    def _encode(self, request: Request) -> list[bytes]:
        return encode_request(request, self._profile, prefix=self._prefix, blobs=self._blobs)

    async def _target(self, body: Sequence[bytes]) -> tuple[str, dict[str, str]]:
        return address_of(self._profile, "/chat/completions"), self._headers

    async def _read(self, answer: Answer, request: Request) -> AsyncGenerator[ModelEvent, None]:
        reader = _Reader(self._profile, request.tools)
        answer.tally.count = lambda: reader.assembler.used(usage_of(reader.usage, self._profile))
        ended = False
        while not ended and (events := await answer.events()):
            for event in events:
                if event.data.strip() == b"[DONE]":
                    ended = True
                    break
                found, content = reader.chunk(event.data)
                if content:
                    answer.progress()
                if reader.stop:
                    answer.finished()
                for item in found:
                    yield item
        if not ended and not reader.stop:
            why = "the answer was cut off" if not reader.assembler.empty else "the answer holds no choices"
            raise UpstreamError(why, provider=self._profile.provider)
        if ended:
            await answer.drain()
            if reader.assembler.empty and not reader.stop:
                raise UpstreamError("the answer holds no choices", provider=self._profile.provider)
        if reader.stop == "error":
            raise UpstreamError("the provider ended the answer with an error", provider=self._profile.provider)
        stop = "refusal" if reader.refused else _STOPS.get(reader.stop, "stop")
        last, message = reader.assembler.finish(stop, usage_of(reader.usage, self._profile))
        for item in last:
            yield item
        yield Done(message)
