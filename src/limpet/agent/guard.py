"""The loop guard: a model that repeats itself is told so, then held back (F11)."""

from __future__ import annotations

from msgspec import structs

from limpet.types.content import Text, ToolCall
from limpet.types.tool import ToolResult

NUDGE_AT = 3
BLOCK_AT = 5
CUT_OFF_LIMIT = 3


class LoopGuard:
    """Counts, within one turn, calls with the same name, arguments and result."""

    def __init__(self) -> None:
        self._repeats: dict[tuple[str, str], tuple[str, int]] = {}
        self._faults = 0
        self._last_fault = ""

    def refusal(self, call: ToolCall) -> str:
        """Why this call is not run any more; empty when it may."""
        _, count = self._repeats.get((call.name, call.arguments), ("", 0))
        if count < BLOCK_AT - 1:
            return ""
        return (
            f"This exact call was made {count} times with the same result and is not run again. "
            "Try something else, or tell the user what is in the way."
        )

    def seen(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """Count a result; the same one with a remark when it is the third of its kind."""
        key = (call.name, call.arguments)
        before, count = self._repeats.get(key, ("", 0))
        if count >= BLOCK_AT - 1:
            return result  # that is the refusal itself
        count = count + 1 if before == result.text else 1
        self._repeats[key] = (result.text, count)
        if count < NUDGE_AT:
            return result
        remark = Text(f"\n[This is the {count}th time this exact call gave this exact result. Change your approach.]")
        return structs.replace(result, content=(*result.content, remark))

    def faults(self, calls: tuple[ToolCall, ...]) -> int:
        """How many answers in a row had nothing but calls that could not be read, for the same reason."""
        fault = calls[0].fault if calls and all(call.fault for call in calls) else ""
        self._faults = self._faults + 1 if fault and fault == self._last_fault else int(bool(fault))
        self._last_fault = fault
        return self._faults
