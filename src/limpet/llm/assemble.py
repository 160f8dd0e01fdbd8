"""One answer out of a stream of pieces, whatever the wire: the rules for calls, reasoning and text live here.

A wire feeds `text`, `thinking` and `call` and passes on the events they give; `finish` makes the message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from limpet.llm.arguments import CUT_OFF, settle
from limpet.llm.names import tool_name
from limpet.llm.schema import restore
from limpet.llm.tokens import estimate
from limpet.llm.unicode import Halves, clean, clean_json
from limpet.types.content import AssistantBlock, Text, Thinking, ToolCall
from limpet.types.event import AnswerReset, ModelEvent, TextDelta, ThinkingDelta
from limpet.types.ids import new_id
from limpet.types.message import AssistantMessage, StopReason
from limpet.types.profile import Profile
from limpet.types.tool import ToolSpec
from limpet.types.usage import Usage

if TYPE_CHECKING:
    from limpet.llm.dialect import Piece, TextFilter

CUT_BY_LENGTH = (
    "the answer reached its token limit and was cut off, so none of its calls was run. "
    "Write less at once: split long content into several smaller calls."
)
NO_NAME = "the call names no tool"


class _Text(Struct):
    parts: list[str]
    halves: Halves
    signature: str = ""


class _Thinking(Struct):
    parts: list[str]
    halves: Halves
    signature: str = ""
    redacted: str = ""


class _Call(Struct):
    id: str
    name: str
    arguments: list[str]
    fault: str = ""
    signature: str = ""

    @property
    def complete(self) -> bool:
        text = "".join(self.arguments)
        return bool(text.strip()) and not settle(text, ended=False)[1]


class Assembler:
    """Collects one answer. Blocks keep the order in which they began."""

    def __init__(self, profile: Profile, tools: tuple[ToolSpec, ...] = ()) -> None:
        self._profile = profile
        self._tools = tools
        self._blocks: list[_Text | _Thinking | _Call] = []
        self._slots: dict[int, _Call] = {}
        self._filter = _filter_for(profile, tools)
        self._halves = Halves()
        self._closed = False

    @property
    def empty(self) -> bool:
        return not self._blocks

    def text(self, piece: str) -> list[ModelEvent]:
        """More of the visible text."""
        if self._filter is None:
            return self._show(piece)
        return self._act(self._filter.feed(self._halves.feed(piece)))

    def sign(self, signature: str) -> bool:
        """A signature for the newest block if that is text, which it ends; False when it is none."""
        block = self._blocks[-1] if self._blocks else None
        if not isinstance(block, _Text) or self._closed:
            return False
        block.signature = signature
        self._closed = True
        return True

    def thinking(self, piece: str, *, signature: str = "", redacted: str = "", begin: bool = False) -> list[ModelEvent]:
        """More reasoning; `begin` starts a block of its own. A signature belongs to the newest block."""
        last = self._blocks[-1] if self._blocks else None
        if begin or not isinstance(last, _Thinking):
            last = _Thinking([], Halves())
            self._blocks.append(last)
        last.signature += signature
        last.redacted += redacted
        piece = last.halves.feed(piece)
        last.parts.append(piece)
        return [ThinkingDelta(piece)] if piece else []

    def call(self, *, index: int | None, id: str, name: str, arguments: object, signature: str = "") -> None:
        """A piece of a call. Later pieces may lack id and name; `arguments` may be text, an object or nothing."""
        slot = self._slot(index, id, name=name)
        slot.id = slot.id or id
        slot.name = slot.name or name
        slot.signature = slot.signature or signature
        if isinstance(arguments, str):
            slot.arguments.append(arguments)
        elif arguments is not None:
            slot.arguments.append(clean_json(arguments))

    def finish(self, stop: StopReason, usage: Usage) -> tuple[list[ModelEvent], AssistantMessage]:
        """The last events and the message. Calls of an answer cut off by its length carry a fault."""
        events: list[ModelEvent] = []
        if self._filter is not None:
            events += self._act(self._filter.feed(self._halves.finish()))
            events += self._act(self._filter.finish())
        blocks: list[AssistantBlock] = []
        taken: set[str] = set()
        for block in self._blocks:
            match block:
                case _Text():
                    rest = block.halves.finish()
                    text = "".join(block.parts) + rest
                    events += [TextDelta(rest)] if rest else []
                    blocks += [Text(text, clean(block.signature))] if text.strip() else []
                case _Thinking():
                    text = "".join(block.parts) + block.halves.finish()
                    if text or block.signature or block.redacted:
                        blocks.append(Thinking(text, clean(block.signature), clean(block.redacted)))
                case _Call():
                    blocks.append(self._named(_settled(block, stop, taken=taken)))
        if stop == "stop" and any(isinstance(block, ToolCall) for block in blocks):
            stop = "tool_calls"
        elif stop == "tool_calls" and not any(isinstance(block, ToolCall) for block in blocks):
            stop = "stop"
        producer = self._profile.producer
        return events, AssistantMessage(content=tuple(blocks), producer=producer, stop=stop, usage=usage)

    def used(self, told: Usage) -> Usage:
        """What an answer that is cut off here has used: `told` by the service, and at least what came of it."""
        parts = [
            part for block in self._blocks for part in (block.arguments if isinstance(block, _Call) else block.parts)
        ]
        came = round(estimate("".join(parts)) * self._profile.token_factor)
        return msgspec.structs.replace(told, output=max(told.output, came))

    def _named(self, call: ToolCall) -> ToolCall:
        """The call as the tool's own schema names things."""
        tool = next((tool for tool in self._tools if tool_name(tool.name) == call.name), None)
        if tool is None:
            return call
        arguments = restore(call.arguments, tool, self._profile)
        return msgspec.structs.replace(call, name=tool.name, arguments=arguments)

    def _show(self, piece: str) -> list[ModelEvent]:
        last = self._blocks[-1] if self._blocks else None
        if not isinstance(last, _Text) or (self._closed and piece):
            if not piece:
                return []
            self._closed = False
            last = _Text([], Halves())
            self._blocks.append(last)
        piece = last.halves.feed(piece)
        last.parts.append(piece)
        return [TextDelta(piece)] if piece else []

    def _act(self, pieces: list[Piece]) -> list[ModelEvent]:
        from limpet.llm.dialect import Recalled, Shown, Thought, Written  # only some profiles need it

        events: list[ModelEvent] = []
        for piece in pieces:
            match piece:
                case Shown(text):
                    events += self._show(text)
                case Thought(text):
                    events += self.thinking(text)
                case Written(name, arguments, fault):
                    self._blocks.append(_Call("", name, [arguments], fault))
                case Recalled():
                    events += self._recall()
        return events

    def _recall(self) -> list[ModelEvent]:
        """The text so far becomes reasoning."""
        shown = any(isinstance(block, _Text) for block in self._blocks)
        self._blocks = [
            _Thinking(block.parts, block.halves) if isinstance(block, _Text) else block for block in self._blocks
        ]
        return [AnswerReset("the model's reasoning is not part of its answer")] if shown else []

    def _slot(self, index: int | None, id: str, *, name: str) -> _Call:
        """The call that a piece belongs to, a new one where it begins one."""
        calls = [block for block in self._blocks if isinstance(block, _Call)]
        known = self._slots.get(index) if index is not None else None
        if index is None:
            known = next((slot for slot in calls if slot.id == id), None) if id else (calls[-1] if calls else None)
        if known is None or _begins_another(known, id, name=name):
            known = _Call("", "", [])
            self._blocks.append(known)
            if index is not None:
                self._slots[index] = known
        return known


def _filter_for(profile: Profile, tools: tuple[ToolSpec, ...]) -> TextFilter | None:
    if not profile.think_tags and not profile.text_calls:
        return None
    from limpet.llm.dialect import TextFilter  # only some profiles need it

    return TextFilter(think=profile.think_tags, dialects=profile.text_calls, tools=tools)


def _begins_another(slot: _Call, id: str, *, name: str) -> bool:
    """Servers reuse one index for several calls: another id, or without ids a name after complete arguments, tells."""
    if id and slot.id:
        return id != slot.id
    return bool(name and slot.name and (name != slot.name or slot.complete))


def _settled(slot: _Call, stop: StopReason, *, taken: set[str]) -> ToolCall:
    arguments, fault = settle("".join(slot.arguments), ended=stop != "length")
    fault = slot.fault or fault
    if stop == "length":
        fault = CUT_BY_LENGTH
    elif stop in ("error", "cancelled", "refusal") and not fault:
        fault = CUT_OFF
    if not slot.name.strip():
        fault = fault or NO_NAME
    name = clean(slot.name).strip() or "unknown"
    wanted = clean(slot.id) or new_id("call_")
    unique, count = wanted, 2
    while unique in taken:
        unique, count = f"{wanted}_{count}", count + 1
    taken.add(unique)
    return ToolCall(id=unique, name=name, arguments=arguments, fault=fault, signature=clean(slot.signature))


def cost_of(usage: Usage, profile: Profile) -> Usage:
    """`usage` with its cost in micro-dollars, where the price is known; what runs on one's own machine is free."""
    price = profile.price
    if price is None:
        return msgspec.structs.replace(usage, cost=0) if profile.local else usage
    read, write = price.cache_read or price.input, price.cache_write or price.input
    total = (
        usage.input * price.input + usage.output * price.output + usage.cache_read * read + usage.cache_write * write
    )
    return msgspec.structs.replace(usage, cost=-(-total // 1_000_000))
