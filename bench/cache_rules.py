"""What providers charge for input: their prompt caches, as their documents describe them in late 2026.

No page of a vendor was at hand; the rules are those quoted by the sources each class names. Costs are in tokens of
uncached input, so 1.0 of a day is what it costs when nothing is cached.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Block(NamedTuple):
    """A part of a request that caches can end at. `end` names everything up to here, `tokens` counts it.

    `kind` is `tool`, `system`, `text`, `runtime`, `tool_use`, `tool_result` or, of other wires, `message`.
    """

    id: int
    end: int
    tokens: int
    kind: str
    message: int


class Priced(NamedTuple):
    """A request at second `at`. `marks` are places of blocks, each with the seconds it is to be kept."""

    at: float
    blocks: Sequence[Block]
    marks: Sequence[tuple[int, int]]

    @property
    def total(self) -> int:
        return self.blocks[-1].tokens


class Bill(NamedTuple):
    """Tokens of a request, those of them read from a cache, and the cost of all."""

    total: int
    read: int
    cost: float


class Cache(Protocol):
    """A provider's cache, through one sequence of requests."""

    def ask(self, request: Priced) -> Bill: ...


class Anthropic:
    """Kept is what ends at one of at most four marks: 1.25 x for 5 minutes, 2 x for an hour, renewed by each read.

    A read looks from each mark at the 20 positions before it, a run of calls or of results being one. Nothing shorter
    than the model's minimum is kept. Written for an hour is what lies between the read part and the last mark of an
    hour, for five minutes what lies behind. (platform.claude.com/docs/en/build-with-claude/prompt-caching)
    """

    def __init__(self, minimum: int, read: float) -> None:
        self._minimum = minimum
        self._read = read
        self._kept: dict[int, tuple[float, int]] = {}

    def ask(self, request: Priced) -> Bill:
        now, blocks = request.at, request.blocks
        best = max((self._found(request, place) for place, _ in request.marks), default=0)
        for block in blocks:
            until, life = self._kept.get(block.end, (-1.0, 0))
            if until >= now and block.tokens <= best:
                self._kept[block.end] = (now + life, life)
        marked = [(blocks[place], life) for place, life in request.marks if blocks[place].tokens >= self._minimum]
        hour = max((block.tokens for block, life in marked if life >= 3_600), default=0)
        last = max((block.tokens for block, _ in marked), default=0)
        hour = max(hour, best)
        last = max(last, hour)
        for block, life in marked:
            if block.tokens > best:
                self._kept[block.end] = (now + life, life)
        cost = best * self._read + (hour - best) * 2.0 + (last - hour) * 1.25 + (request.total - last)
        return Bill(request.total, best, cost)

    def _found(self, request: Priced, mark: int) -> int:
        """Tokens of the longest kept prefix that a mark finds."""
        positions, before = 0, ""
        for block in reversed(request.blocks[: mark + 1]):
            if block.kind != before or block.kind not in ("tool_use", "tool_result"):
                positions += 1
            if positions > 20:
                return 0
            before = block.kind
            if self._kept.get(block.end, (-1.0, 0))[0] >= request.at:
                return block.tokens
        return 0


class OpenAI:
    """From GPT-5.6 on: what ends with the newest message of each request is kept for 30 minutes from its last use.

    All that is not read is written, 1.25 x; from 1,024 tokens; 0.1 x for what is read.
    (developers.openai.com/api/docs/guides/prompt-caching)
    """

    LIFE = 1_800

    def __init__(self, read: float, minimum: int = 1_024) -> None:
        self._read = read
        self._minimum = minimum
        self._kept: dict[int, float] = {}

    def ask(self, request: Priced) -> Bill:
        now = request.at
        best = 0
        for block in request.blocks:
            if self._kept.get(block.end, -1.0) >= now:
                best = block.tokens
                self._kept[block.end] = now + self.LIFE
        if request.total < self._minimum:
            return Bill(request.total, 0, request.total)
        self._kept[request.blocks[-1].end] = now + self.LIFE
        return Bill(request.total, best, best * self._read + (request.total - best) * 1.25)


class CommonPrefix:
    """The longest prefix that an earlier request had too, in steps of `step` tokens from `minimum` on; no fee.

    OpenAI before GPT-5.6: from 1,024 in steps of 128, five to ten minutes idle
    (openai-cookbook, Prompt_Caching_201). Gemini 3: from 4,096, its life is not published, ten minutes are assumed
    (ai.google.dev/gemini-api/docs/caching). `write` is the price of what is not read.
    """

    def __init__(self, read: float, *, minimum: int, step: int, life: float, write: float = 1.0) -> None:
        self._read, self._write = read, write
        self._minimum, self._step, self._life = minimum, step, life
        self._seen: dict[int, float] = {}

    def ask(self, request: Priced) -> Bill:
        live = (block.tokens for block in request.blocks if self._seen.get(block.end, -1.0) >= request.at)
        best = max(live, default=0) // self._step * self._step
        best = best if best >= self._minimum else 0
        for block in request.blocks:
            self._seen[block.end] = request.at + self._life
        return Bill(request.total, best, best * self._read + (request.total - best) * self._write)


class DeepSeek:
    """Whole units: the end of a request's input, the end of its answer, and prefixes found to be common; for hours.

    No fee. (api-docs.deepseek.com/guides/kv_cache)
    """

    LIFE = 4 * 3_600

    def __init__(self, read: float) -> None:
        self._read = read
        self._units: dict[int, float] = {}
        self._seen: set[int] = set()

    def ask(self, request: Priced) -> Bill:
        now, blocks = request.at, request.blocks
        best = max((block.tokens for block in blocks if self._units.get(block.end, -1.0) >= now), default=0)
        common = [block.end for block in blocks if block.end in self._seen]
        for unit in (*common[-1:], blocks[-1].end):
            self._units[unit] = now + self.LIFE
        self._seen.update(block.end for block in blocks)
        return Bill(request.total, best, best * self._read + (request.total - best))
