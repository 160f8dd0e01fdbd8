"""The simulated caches do what the documents of their providers say."""

from __future__ import annotations

import pytest

from bench.cache_layouts import Counter, Piece, of_anthropic
from bench.cache_rules import Anthropic, CommonPrefix, DeepSeek, OpenAI, Priced

HOUR, SHORT = 3_600, 300
TEXT = b"limpet " * 943
"""A thousand tokens."""


def asked(at: float, *blocks: str, marks: dict[int, int] | None = None, kind: str = "text") -> Priced:
    """A request of blocks of 1,000 tokens each, named by a letter; `marks` by place."""
    kept = {place % len(blocks): life for place, life in (marks or {}).items()}
    pieces = [Piece(name.encode() + TEXT, kind, 0, kept.get(place, 0)) for place, name in enumerate(blocks)]
    return COUNTER.priced(at, pieces)


COUNTER = Counter()


def thousands(tokens: float) -> int:
    return round(tokens / 1_000)


@pytest.mark.parametrize(
    ("life", "pause", "read"), [(SHORT, 299, 2), (SHORT, 301, 0), (HOUR, 3_599, 2), (HOUR, 3_601, 0)]
)
def test_what_was_marked_is_read_within_its_life(life: int, pause: float, read: int) -> None:
    cache = Anthropic(1_024, 0.1)
    first = cache.ask(asked(0, "a", "b", marks={-1: life}))
    assert first.cost / first.total == pytest.approx(2.0 if life == HOUR else 1.25)
    assert thousands(cache.ask(asked(pause, "a", "b", "c", marks={-1: life})).read) == read


def test_each_read_renews() -> None:
    cache = Anthropic(1_024, 0.1)
    reads = [cache.ask(asked(at, "a", "b", marks={-1: SHORT})).read for at in (0, 250, 500, 750)]
    assert [thousands(read) for read in reads] == [0, 2, 2, 2]


@pytest.mark.parametrize(("more", "kind", "read"), [(19, "text", 2), (20, "text", 0), (40, "tool_use", 2)])
def test_a_mark_looks_back_20_positions_and_a_run_of_calls_is_one(more: int, kind: str, read: int) -> None:
    cache = Anthropic(1_024, 0.1)
    cache.ask(asked(0, "a", "b", marks={-1: HOUR}))
    later = asked(9, "a", "b", *(f"{number}" for number in range(more)), marks={-1: HOUR})
    blocks = [block._replace(kind=kind) if place > 1 else block for place, block in enumerate(later.blocks)]
    assert thousands(cache.ask(later._replace(blocks=blocks)).read) == read


def test_of_two_lives_each_part_has_its_price_and_short_prefixes_are_not_kept() -> None:
    mixed = asked(0, "a", "b", "c", marks={0: HOUR, 1: SHORT})
    assert Anthropic(512, 0.1).ask(mixed).cost / mixed.total == pytest.approx((2.0 + 1.25 + 1) / 3)
    assert Anthropic(4_096, 0.1).ask(mixed).cost == mixed.total


def test_openai_reads_only_to_the_end_of_an_earlier_request() -> None:
    cache = OpenAI(0.1)
    cache.ask(asked(0, "a", "b"))
    assert [thousands(cache.ask(asked(9, *blocks)).read) for blocks in ("ac", "abc", "abcd")] == [0, 2, 3]
    assert cache.ask(asked(2_000, "a", "b")).read == 0


def test_common_prefixes_are_read_in_steps_from_a_minimum_on() -> None:
    cache = CommonPrefix(0.1, minimum=1_024, step=128, life=600)
    cache.ask(asked(0, "a", "b", "c"))
    bill = cache.ask(asked(9, "a", "b", "d"))
    assert bill.read % 128 == 0
    assert thousands(bill.read) == 2
    assert cache.ask(asked(9, "a", "e")).read == 0


def test_deepseek_reads_whole_units_and_finds_common_prefixes() -> None:
    cache = DeepSeek(0.02)
    cache.ask(asked(0, "a", "b"))
    assert [thousands(cache.ask(asked(9, "a", name)).read) for name in "cd"] == [0, 1]


def test_blocks_of_a_body_come_without_their_marks() -> None:
    body = (
        b'{"model":"m","tools":[{"name":"t","cache_control":{"type":"ephemeral","ttl":"1h"}}],"system":[],'
        b'"messages":[{"role":"user","content":[{"type":"text","text":"<runtime>"},'
        b'{"type":"text","text":"b","cache_control":{"type":"ephemeral"}}]}]}'
    )
    assert of_anthropic(body) == [
        Piece(b'{"name":"t"}', "tool", -1, HOUR),
        Piece(b'{"type":"text","text":"<runtime>"}', "runtime", 0),
        Piece(b'{"type":"text","text":"b"}', "text", 0, SHORT),
    ]
