"""Amazon Bedrock, ConverseStream: requests out, frames in, one stream in the middle.

With a key it is sent as a bearer token (a Bedrock API key); without one requests are signed (`llm/aws.py`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress

import msgspec
from msgspec import Raw, Struct

from limpet.errors import ModelError, UpstreamError
from limpet.llm.assemble import Assembler, cost_of
from limpet.llm.aws import Signer
from limpet.llm.cache_marks import HOUR, lifetime, marked
from limpet.llm.eventstream import Frame, FrameError, FrameParser
from limpet.llm.http import Answer, Http
from limpet.llm.names import NO_TEXT, address_of, call_id, tool_name
from limpet.llm.pictures import data_of, note_of
from limpet.llm.prefix import PrefixCache, body_of, to_json
from limpet.llm.schema import Offered, offer_of
from limpet.llm.unicode import decode_json
from limpet.llm.wire.service import NOBODY, Service, Witness
from limpet.types.content import AssistantBlock, Image, ResultBlock, Text, Thinking, ToolCall, UserBlock
from limpet.types.event import Done, ModelEvent
from limpet.types.message import (
    AssistantMessage,
    Message,
    Request,
    Rhythm,
    Sampling,
    StopReason,
    ToolMessage,
    UserMessage,
)
from limpet.types.ports import Blobs
from limpet.types.profile import Profile
from limpet.types.usage import Usage

_PATH = "/model/{model}/converse-stream"
_BUDGETS = {"low": 2_048, "medium": 8_192, "high": 24_576}
_NOTHING = Raw(b'{"type":"object","properties":{}}')
_STOPS: dict[str, StopReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "refusal",
    "content_filtered": "refusal",
    "refusal": "refusal",
}
_FAILURES = ("malformed_model_output", "malformed_tool_use")
Wire = dict[str, object]


# --- out ------------------------------------------------------------------------------------------------------------


def encode_request(request: Request, profile: Profile, *, prefix: PrefixCache, blobs: Blobs | None) -> list[bytes]:
    """The body of a request, in parts, with the marks of `llm/cache_marks.py` as cache points."""
    point = _point(profile, request.rhythm)

    def encode(group: Sequence[Message], last: bool) -> bytes:
        blocks = [block for message in group for block in _blocks(message, profile, blobs=blobs)]
        if not blocks:
            return b""
        role = _role(group[0], profile)
        if point and last and role == "user":
            for place in reversed(marked(len(blocks))):
                blocks.insert(place + 1, point)
        return to_json({"role": role, "content": blocks})

    pieces = prefix.encode(
        request.session, request.messages, group=lambda message: _role(message, profile), encode=encode
    )
    head: Wire = {}
    if request.system.strip():
        system: list[object] = [{"text": request.system}]
        head["system"] = [*system, point] if point else system
    if tools := _tools(request, profile, point=point):
        head["toolConfig"] = {"tools": tools}
    if config := _config(request.sampling, profile):
        head["inferenceConfig"] = config
    if fields := _thinking(request.sampling, profile):
        head["additionalModelRequestFields"] = fields
    return body_of(head, pieces, key="messages", refused=profile.refused)


def _point(profile: Profile, rhythm: Rhythm) -> Wire:
    """The cache point; empty where nothing is to be kept. Lives five minutes unless it says more."""
    seconds = lifetime(profile, rhythm)
    if not seconds:
        return {}
    return {"cachePoint": {"type": "default", **({"ttl": "1h"} if seconds == HOUR else {})}}


def _tools(request: Request, profile: Profile, *, point: Wire) -> list[Wire]:
    """The tools. Those that only the history names stand there too: calls without any tool are refused.

    Converse has no way to forbid calls: where none is allowed, tools are left out as far as the history lets them.
    """
    used = {tool_name(call.name): call for m in request.messages if isinstance(m, AssistantMessage) for call in m.calls}
    offered = offer_of(request.tools, profile).tools if profile.tools else ()
    if not used and request.tool_choice == "none":
        return []
    known = {tool.name for tool in offered}
    gone = [Offered(name, "no longer available", _NOTHING) for name in used if name not in known]
    tools: list[Wire] = [_tool(tool) for tool in ([*offered] if offered else gone)]
    if tools and point:
        tools.append(point)
    return tools


def _tool(tool: Offered) -> Wire:
    spec: Wire = {"name": tool.name, "inputSchema": {"json": tool.parameters}}
    return {"toolSpec": {**spec, "description": tool.description} if tool.description.strip() else spec}


def _config(sampling: Sampling, profile: Profile) -> Wire:
    fields: Wire = {}
    thinks = sampling.thinking in _BUDGETS and bool(profile.thinking)
    if sampling.temperature is not None and profile.temperature and not thinks:
        fields["temperature"] = sampling.temperature
    wanted = sampling.max_tokens
    if sampling.thinking in _BUDGETS and profile.thinking == "budget":
        wanted = max(wanted or 0, _BUDGETS[sampling.thinking] + 4_096)
    if wanted is not None:
        fields["maxTokens"] = min(wanted, profile.max_output) if profile.max_output else wanted
    return fields


def _thinking(sampling: Sampling, profile: Profile) -> Wire:
    level = sampling.thinking
    if level is None or level == "off":
        return {}
    if profile.thinking == "budget":
        return {"thinking": {"type": "enabled", "budget_tokens": _BUDGETS[level]}}
    if profile.thinking == "adaptive":
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": level}}
    if profile.thinking == "effort_only":
        return {"output_config": {"effort": level}}
    return {"reasoning_effort": level} if profile.thinking == "effort" else {}


def _role(message: Message, profile: Profile) -> str:
    """The side a message is grouped with; an answer of which nothing can be sent lets its neighbours meet."""
    return "assistant" if isinstance(message, AssistantMessage) and _answer(message, profile) else "user"


def _blocks(message: Message, profile: Profile, *, blobs: Blobs | None) -> list[Wire]:
    match message:
        case AssistantMessage():
            return _answer(message, profile)
        case UserMessage():
            content = [*message.content, Text(message.runtime)] if message.runtime else message.content
            return _content(content, profile, blobs=blobs) or [{"text": NO_TEXT}]
        case ToolMessage():
            content = _content(message.content, profile, blobs=blobs) or [{"text": "(no output)"}]
            result: Wire = {"toolUseId": call_id(message.call_id), "content": content}
            return [{"toolResult": {**result, "status": "error"} if message.is_error else result}]


def _content(blocks: Sequence[UserBlock | ResultBlock], profile: Profile, *, blobs: Blobs | None) -> list[Wire]:
    found: list[Wire] = []
    for block in blocks:
        if isinstance(block, Text) and block.text.strip():
            found.append({"text": block.text})
        elif isinstance(block, Image):
            data = data_of(block, blobs, allowed=profile.images)
            if data is None:
                found.append({"text": note_of(block, allowed=profile.images)})
            else:
                kind = block.mime.partition("/")[2].replace("jpg", "jpeg")
                found.append({"image": {"format": kind, "source": {"bytes": data}}})
    return found


def _answer(message: AssistantMessage, profile: Profile) -> list[Wire]:
    own = message.producer == profile.producer
    blocks = [wire for block in message.content if (wire := _block(block, own=own))]
    return blocks if any("reasoningContent" not in block for block in blocks) else []


def _block(block: AssistantBlock, *, own: bool) -> Wire | None:
    """One block of an answer. Reasoning goes back, unchanged, only to the model that made it."""
    match block:
        case Text(text) if text.strip():
            return {"text": text}
        case Thinking(redacted=redacted) if own and redacted:
            return {"reasoningContent": {"redactedContent": redacted}}
        case Thinking(text, signature) if own and signature:
            return {"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}}
        case ToolCall():
            arguments = Raw(block.arguments.encode("utf-8", "replace"))
            use: Wire = {"toolUseId": call_id(block.id), "name": tool_name(block.name), "input": arguments}
            return {"toolUse": use}
        case _:
            return None


# --- in -------------------------------------------------------------------------------------------------------------


class _Use(Struct, rename="camel"):
    tool_use_id: str = ""
    name: str = ""
    input: object = None


class _Start(Struct, rename="camel"):
    tool_use: _Use | None = None


class _Reasoning(Struct, rename="camel"):
    text: str | None = None
    signature: str | None = None
    redacted_content: str | None = None


class _Delta(Struct, rename="camel"):
    text: str | None = None
    tool_use: _Use | None = None
    reasoning_content: _Reasoning | None = None


class _Usage(Struct, rename="camel"):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_write_input_tokens: int | None = None


class _Event(Struct, rename="camel"):
    content_block_index: int = 0
    start: _Start | None = None
    delta: _Delta | None = None
    stop_reason: str | None = None
    usage: _Usage | None = None
    message: str | None = None


def usage_of(wire: _Usage, profile: Profile) -> Usage:
    usage = Usage(
        input=wire.input_tokens or 0,
        output=wire.output_tokens or 0,
        cache_read=wire.cache_read_input_tokens or 0,
        cache_write=wire.cache_write_input_tokens or 0,
    )
    return cost_of(usage, profile)


class _Reader:
    """Feeds frames to the assembler and remembers what only the end needs."""

    def __init__(self, profile: Profile, assembler: Assembler) -> None:
        self.assembler = assembler
        self.stop = ""
        self.usage = _Usage()
        self._provider = profile.provider
        self._reasoning = -1

    def frame(self, frame: Frame) -> tuple[list[ModelEvent], bool]:
        """The events of one frame, and whether it held content. Raises what an exception means."""
        headers = frame.headers
        if headers.get(":message-type", "event") != "event":
            raise self._failure(frame)
        try:
            event = decode_json(frame.payload or b"{}", _Event)
        except msgspec.DecodeError as error:
            what = f"the answer is not readable ({error}): {frame.payload[:120].decode('utf-8', 'replace')}"
            raise UpstreamError(what, provider=self._provider) from error
        match headers.get(":event-type"):
            case "contentBlockDelta" if event.delta is not None:
                return self._more(event.content_block_index, event.delta), True
            case "contentBlockStart" if event.start is not None and event.start.tool_use is not None:
                use = event.start.tool_use
                self.assembler.call(index=event.content_block_index, id=use.tool_use_id, name=use.name, arguments=None)
                return [], True
            case "messageStop":
                self.stop = event.stop_reason or "end_turn"
                if self.stop in _FAILURES:
                    raise UpstreamError(f"the model failed to answer: {self.stop}", provider=self._provider)
            case "metadata" if event.usage is not None:
                self.usage = event.usage
            case _:
                pass
        return [], False

    def _more(self, index: int, delta: _Delta) -> list[ModelEvent]:
        if delta.text:
            return self.assembler.text(delta.text)
        if delta.tool_use is not None:
            self.assembler.call(index=index, id="", name="", arguments=delta.tool_use.input)
        reasoning = delta.reasoning_content
        if reasoning is None:
            return []
        begin, self._reasoning = index != self._reasoning, index
        return self.assembler.thinking(
            reasoning.text or "",
            signature=reasoning.signature or "",
            redacted=reasoning.redacted_content or "",
            begin=begin,
        )

    def _failure(self, frame: Frame) -> ModelError:
        from limpet.llm.classify import error_inside  # an error in a stream is rare

        code = frame.headers.get(":exception-type") or frame.headers.get(":error-code", "")
        text = frame.headers.get(":error-message", "")
        with suppress(msgspec.DecodeError):
            text = decode_json(frame.payload or b"{}", _Event).message or text
        return error_inside({"type": code, "message": text or code}, provider=self._provider)


# --- the stream -----------------------------------------------------------------------------------------------------


class Bedrock(Service):
    """A `Model` at Amazon Bedrock. `{region}` in `profile.base_url` stands for the configured region."""

    def __init__(
        self,
        profile: Profile,
        *,
        key: str,
        http: Http,
        prefix: PrefixCache | None = None,
        blobs: Blobs | None = None,
        witness: Witness = NOBODY,
    ) -> None:
        super().__init__(profile, key=key, http=http, prefix=prefix, blobs=blobs, witness=witness)
        self._signer = Signer(profile.provider)

    def _encode(self, request: Request) -> list[bytes]:
        return encode_request(request, self._profile, prefix=self._prefix, blobs=self._blobs)

    async def _target(self, body: Sequence[bytes]) -> tuple[str, dict[str, str]]:
        url = await self._address()
        headers = self._headers or await self._signer.headers(url, body)
        return url, {**headers, "Accept": "application/vnd.amazon.eventstream"}

    async def _address(self) -> str:
        base = self._profile.base_url
        if "{region}" in base:
            base = base.replace("{region}", await self._signer.region())
        return address_of(msgspec.structs.replace(self._profile, base_url=base), _PATH)

    async def _read(self, answer: Answer, request: Request) -> AsyncGenerator[ModelEvent, None]:
        reader = _Reader(self._profile, Assembler(self._profile, request.tools))
        answer.tally.count = lambda: reader.assembler.used(usage_of(reader.usage, self._profile))
        parser = FrameParser()
        while chunk := await answer.read():
            try:
                frames = parser.feed(chunk)
            except FrameError as error:
                what = f"the answer is not readable ({error}): {chunk[:60]!r}"
                raise UpstreamError(what, provider=self._profile.provider) from error
            for frame in frames:
                found, content = reader.frame(frame)
                if content:
                    answer.progress()
                if reader.stop:
                    answer.finished()
                for item in found:
                    yield item
        if not reader.stop:
            why = "the answer was cut off" if not reader.assembler.empty else "the answer is empty"
            raise UpstreamError(why, provider=self._profile.provider)
        last, message = reader.assembler.finish(_STOPS.get(reader.stop, "stop"), usage_of(reader.usage, self._profile))
        for item in last:
            yield item
        yield Done(message)
