"""Gemini, its own API: requests out, chunks in, one stream in the middle.

Thought signatures stay with the part they came with and go back, as they came, to the model that made them. A call
that another model made carries the profile's stand-in (`call_signature`), which the service defines for that.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import msgspec
from msgspec import Raw, Struct

from limpet.errors import UpstreamError
from limpet.llm.assemble import Assembler, cost_of
from limpet.llm.http import Answer
from limpet.llm.names import NO_TEXT, address_of, call_id, tool_name
from limpet.llm.pictures import data_of, note_of
from limpet.llm.prefix import PrefixCache, body_of, to_json
from limpet.llm.schema import Offered, offer_of
from limpet.llm.unicode import decode_json
from limpet.llm.wire.service import Service
from limpet.types.content import AssistantBlock, Image, Opaque, ResultBlock, Text, Thinking, ToolCall, UserBlock
from limpet.types.event import Done, ModelEvent
from limpet.types.message import AssistantMessage, Message, Request, Sampling, StopReason, ToolMessage, UserMessage
from limpet.types.ports import Blobs
from limpet.types.profile import Profile
from limpet.types.usage import Usage

_PATH = "/models/{model}:streamGenerateContent?alt=sse"
_BUDGETS = {"off": 0, "low": 2_048, "medium": 8_192, "high": 24_576}
_REFUSALS = {
    "SAFETY": "its safety filter stopped the answer",
    "RECITATION": "the answer would recite a protected text",
    "LANGUAGE": "the language is not supported",
    "BLOCKLIST": "the text holds forbidden terms",
    "PROHIBITED_CONTENT": "the content is prohibited",
    "SPII": "the answer would hold sensitive personal data",
    "IMAGE_SAFETY": "its safety filter stopped an image",
    "OTHER": "it gives no reason",
}
_FAILURES = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MISSING_THOUGHT_SIGNATURE", "TOO_MANY_TOOL_CALLS")
Wire = dict[str, object]


# --- out ------------------------------------------------------------------------------------------------------------


def encode_request(request: Request, profile: Profile, *, prefix: PrefixCache, blobs: Blobs | None) -> list[bytes]:
    """The body of a request, in parts. What is the same as last time in the session is not encoded again.

    Results of a batch make one content, for the service counts them; a user's words after it make another.
    """

    def encode(group: Sequence[Message], _last: bool) -> bytes:
        parts = [part for message in group for part in _parts(message, profile, blobs=blobs)]
        if not parts:
            return b""
        role = "model" if isinstance(group[0], AssistantMessage) else "user"
        pictures = _result_pictures(group, profile, blobs=blobs)
        contents = [{"role": role, "parts": parts}, *([{"role": "user", "parts": pictures}] if pictures else [])]
        return b",".join(to_json(content) for content in contents)

    pieces = prefix.encode(
        request.session, request.messages, group=lambda message: type(message).__name__, encode=encode
    )
    head: Wire = {}
    if request.system.strip():
        head["systemInstruction"] = {"parts": [{"text": request.system}]}
    tail: Wire = {}
    if profile.tools and (offered := offer_of(request.tools, profile).tools):
        head["tools"] = [{"functionDeclarations": [_tool(tool) for tool in offered]}]
        if request.tool_choice == "none":
            tail["toolConfig"] = {"functionCallingConfig": {"mode": "NONE"}}
    if config := _config(request.sampling, profile):
        tail["generationConfig"] = config
    return body_of(head, pieces, key="contents", tail=tail, refused=profile.refused)


def _tool(tool: Offered) -> Wire:
    wire: Wire = {"name": tool.name, "description": tool.description}
    return wire if tool.empty else {**wire, "parameters": tool.parameters}


def _config(sampling: Sampling, profile: Profile) -> Wire:
    fields: Wire = {}
    if sampling.temperature is not None and profile.temperature:
        fields["temperature"] = sampling.temperature
    if sampling.max_tokens is not None:
        limit = min(sampling.max_tokens, profile.max_output) if profile.max_output else sampling.max_tokens
        fields["maxOutputTokens"] = limit
    level = sampling.thinking
    if level is None or not profile.thinking:
        return fields
    thinking: Wire = {} if level == "off" else {"includeThoughts": True}
    if profile.thinking == "budget":
        thinking["thinkingBudget"] = _BUDGETS[level]
    elif profile.thinking in ("effort", "effort_only"):
        least = "minimal" if profile.thinking == "effort" else "low"
        thinking["thinkingLevel"] = least if level == "off" else level
    fields["thinkingConfig"] = thinking
    return fields


def _parts(message: Message, profile: Profile, *, blobs: Blobs | None) -> list[Wire]:
    match message:
        case UserMessage():
            blocks = [*message.content, Text(message.runtime)] if message.runtime else message.content
            return _content(blocks, profile, blobs=blobs) or [{"text": NO_TEXT}]
        case ToolMessage():
            texts = [block.text for block in message.content if isinstance(block, Text) and block.text]
            said = {"error" if message.is_error else "output": "\n".join(texts) or "(no output)"}
            answer = {"id": call_id(message.call_id), "name": tool_name(message.name), "response": said}
            return [{"functionResponse": answer}]
        case AssistantMessage():
            return _answer(message, profile)


def _content(blocks: Sequence[UserBlock | ResultBlock], profile: Profile, *, blobs: Blobs | None) -> list[Wire]:
    parts: list[Wire] = []
    for block in blocks:
        if isinstance(block, Text) and block.text.strip():
            parts.append({"text": block.text})
        elif isinstance(block, Image):
            data = data_of(block, blobs, allowed=profile.images)
            if data is None:
                parts.append({"text": note_of(block, allowed=profile.images)})
            else:
                parts.append({"inlineData": {"mimeType": block.mime, "data": data}})
    return parts


def _result_pictures(group: Sequence[Message], profile: Profile, *, blobs: Blobs | None) -> list[Wire]:
    """A response holds no pictures: those of a batch follow in a content of their own."""
    parts: list[Wire] = []
    for message in group:
        if isinstance(message, ToolMessage) and (images := [b for b in message.content if isinstance(b, Image)]):
            parts.append({"text": f"Images from the result of {message.name} ({call_id(message.call_id)}):"})
            parts += _content(images, profile, blobs=blobs)
    return parts


def _answer(message: AssistantMessage, profile: Profile) -> list[Wire]:
    own = message.producer == profile.producer
    parts: list[Wire] = []
    stand_in = "" if own else profile.call_signature
    for block in message.content:
        part = _part(block, own=own, stand_in=stand_in)
        if part is not None:
            parts.append(part)
            stand_in = "" if isinstance(block, ToolCall) else stand_in  # the first call of an answer carries it
    return parts if any("thought" not in part for part in parts) else []


def _part(block: AssistantBlock, *, own: bool, stand_in: str) -> Wire | None:
    signature = block.signature if own and not isinstance(block, Opaque) else ""
    signed: Wire = {"thoughtSignature": signature} if signature else {}
    match block:
        case Thinking(text) if signed:
            return {"text": text, "thought": True, **signed}
        case Text(text) if text.strip():
            return {"text": text, **signed}
        case ToolCall():
            arguments = Raw(block.arguments.encode("utf-8", "replace"))
            call = {"id": call_id(block.id), "name": tool_name(block.name), "args": arguments}
            if stand_in and not signed:
                signed = {"thoughtSignature": stand_in}
            return {"functionCall": call, **signed}
        case _:
            return None


# --- in -------------------------------------------------------------------------------------------------------------


class _Call(Struct):
    name: str = ""
    id: str | None = None
    args: object = None


class _Part(Struct, rename="camel"):
    text: str | None = None
    thought: bool = False
    thought_signature: str | None = None
    function_call: _Call | None = None


class _Content(Struct):
    parts: list[_Part] | None = None


class _Candidate(Struct, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None


class _Feedback(Struct, rename="camel"):
    block_reason: str | None = None


class _Usage(Struct, rename="camel"):
    prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    cached_content_token_count: int | None = None
    thoughts_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None


class _Chunk(Struct, rename="camel"):
    candidates: list[_Candidate] | None = None
    prompt_feedback: _Feedback | None = None
    usage_metadata: _Usage | None = None
    error: object = None


def usage_of(wire: _Usage, profile: Profile) -> Usage:
    cached = wire.cached_content_token_count or 0
    thoughts = wire.thoughts_token_count or 0
    asked = (wire.prompt_token_count or 0) + (wire.tool_use_prompt_token_count or 0)
    output = (wire.candidates_token_count or 0) + thoughts
    usage = Usage(input=max(0, asked - cached), output=output, cache_read=cached, reasoning=thoughts)
    return cost_of(usage, profile)


class _Reader:
    """Feeds chunks to the assembler and remembers what only the end needs."""

    def __init__(self, profile: Profile, assembler: Assembler) -> None:
        self.assembler = assembler
        self.stop = ""
        self.usage = _Usage()
        self._provider = profile.provider
        self._calls = 0
        self._seen = False
        self._signed = False

    def chunk(self, data: bytes) -> tuple[list[ModelEvent], bool]:
        """The events of one chunk, and whether it held content. Raises what an error object means."""
        try:
            chunk = decode_json(data, _Chunk)
        except msgspec.DecodeError as error:
            what = f"the answer is not readable ({error}): {data[:120].decode('utf-8', 'replace')}"
            raise UpstreamError(what, provider=self._provider) from error
        if chunk.error:
            from limpet.llm.classify import error_inside  # an error in a stream is rare

            raise error_inside(chunk.error, provider=self._provider)
        self.usage = chunk.usage_metadata or self.usage
        events: list[ModelEvent] = []
        for candidate in (chunk.candidates or ())[:1]:
            parts = (candidate.content.parts if candidate.content is not None else None) or []
            for part in parts:
                events += self._part(part)
            if candidate.finish_reason:
                events += self._finish(candidate.finish_reason, candidate.finish_message or "")
        if chunk.prompt_feedback is not None and chunk.prompt_feedback.block_reason:
            events += self._refuse(chunk.prompt_feedback.block_reason, "the request")
        return events, bool(events) or self._called()

    def _called(self) -> bool:
        seen, self._seen = self._seen, False
        return seen

    def _part(self, part: _Part) -> list[ModelEvent]:
        signature = part.thought_signature or ""
        if part.function_call is not None:
            call = part.function_call
            self.assembler.call(
                index=self._calls, id=call.id or "", name=call.name, arguments=call.args, signature=signature
            )
            self._calls += 1
            self._seen = True
            return []
        if part.thought:
            begin, self._signed = self._signed, bool(signature)
            return self.assembler.thinking(part.text or "", signature=signature, begin=begin)
        events = self.assembler.text(part.text or "")
        if signature and not self.assembler.sign(signature):
            events += self.assembler.thinking("", signature=signature, begin=True)
        return events

    def _finish(self, reason: str, message: str) -> list[ModelEvent]:
        self.stop = reason
        if reason in _FAILURES:
            what = f"the model failed to answer: {reason}{f' ({message})' if message else ''}"
            raise UpstreamError(what, provider=self._provider)
        return self._refuse(reason, "the answer") if reason in _REFUSALS else []

    def _refuse(self, reason: str, what: str) -> list[ModelEvent]:
        self.stop = reason if reason in _REFUSALS else "SAFETY"
        why = _REFUSALS.get(reason, "its filter stopped it")
        lead = "" if self.assembler.empty else "\n\n"
        return self.assembler.text(f"{lead}[The service refused {what}: {why} ({reason}).]")

    @property
    def reason(self) -> StopReason:
        if self.stop in _REFUSALS:
            return "refusal"
        return "length" if self.stop == "MAX_TOKENS" else "stop"


# --- the stream -----------------------------------------------------------------------------------------------------


class Gemini(Service):
    """A `Model` at Gemini. `profile.base_url` ends with the version (`/v1beta`)."""

    key_header = "x-goog-api-key"

    def _encode(self, request: Request) -> list[bytes]:
        return encode_request(request, self._profile, prefix=self._prefix, blobs=self._blobs)

    async def _target(self, body: Sequence[bytes]) -> tuple[str, dict[str, str]]:
        return address_of(self._profile, _PATH), self._headers

    async def _read(self, answer: Answer, request: Request) -> AsyncGenerator[ModelEvent, None]:
        reader = _Reader(self._profile, Assembler(self._profile, request.tools))
        answer.tally.count = lambda: reader.assembler.used(usage_of(reader.usage, self._profile))
        while events := await answer.events():
            for event in events:
                found, content = reader.chunk(event.data)
                if content:
                    answer.progress()
                if reader.stop:
                    answer.finished()
                for item in found:
                    yield item
        if not reader.stop:
            why = "the answer was cut off" if not reader.assembler.empty else "the answer holds no candidates"
            raise UpstreamError(why, provider=self._profile.provider)
        last, message = reader.assembler.finish(reader.reason, usage_of(reader.usage, self._profile))
        for item in last:
            yield item
        yield Done(message)
