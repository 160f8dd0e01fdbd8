"""What the input of recorded conversations would cost at each provider, in our layout and in those of others.

The requests are those of the real assistant, encoded by the wires and accepted by the strict fakes; prices are those of
the catalog, the caches are simulated by `cache_rules`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from bench.cache_layouts import LAYOUTS, Counter, of_anthropic, of_chat
from bench.cache_rules import Anthropic, Bill, Cache, CommonPrefix, DeepSeek, OpenAI, Priced
from bench.cache_scenes import SCENES, Asked, Recorded, record
from bench.fake import folder
from bench.report import Figure, Report
from limpet.llm.catalog import Catalog, Dollars

CHANGED, COST, ABOVE_FLOOR = 1.0, 0.16, 1.03
"""Goals: share of requests (%) that do not begin with the one before; input of the day at Anthropic, of uncached;
what the day may cost at others, in multiples of the floor."""
DAY = "a day"


class Provider(NamedTuple):
    """A model with its cache: `cache` makes one from the share of the input price that a read costs.

    `floor` is the same for one that reads every prefix it has seen in its life; Anthropic has a goal of its own.
    """

    provider: str
    model: str
    cache: Callable[[float], Cache]
    floor: Callable[[float], Cache] | None = None

    @property
    def price(self) -> Dollars:
        facts = Catalog().facts(self.provider, self.model)
        assert facts is not None
        assert facts.price is not None
        return facts.price

    @property
    def read(self) -> float:
        return self.price.cache_read / self.price.input


PROVIDERS = {
    "Sonnet 5": Provider("anthropic", "claude-sonnet-5", lambda read: Anthropic(1_024, read)),
    "Opus 5.5": Provider("anthropic", "claude-opus-5-5", lambda read: Anthropic(512, read)),
    "Haiku 4.5": Provider("anthropic", "claude-haiku-4-5", lambda read: Anthropic(4_096, read)),
    "GPT-5.6": Provider(
        "openai",
        "gpt-5.6",
        OpenAI,
        lambda read: CommonPrefix(read, minimum=1_024, step=1, life=OpenAI.LIFE, write=1.25),
    ),
    "GPT-5.5": Provider(
        "openai",
        "gpt-5.5",
        lambda read: CommonPrefix(read, minimum=1_024, step=128, life=600),
        lambda read: CommonPrefix(read, minimum=1_024, step=1, life=600),
    ),
    "Gemini 3.8 Flash": Provider(
        "gemini",
        "gemini-3.8-flash",
        lambda read: CommonPrefix(read, minimum=4_096, step=1, life=600),
        lambda read: CommonPrefix(read, minimum=4_096, step=1, life=600),
    ),
    "DeepSeek V4": Provider(
        "deepseek",
        "deepseek-v4-flash",
        DeepSeek,
        lambda read: CommonPrefix(read, minimum=0, step=1, life=DeepSeek.LIFE),
    ),
}


def measure(*, quick: bool) -> Report:
    """All scenes once, the day with several seeds."""
    turns, seeds = (6, 1) if quick else (50, 3)
    scenes = [_record(name, turns) for name in SCENES if name != DAY]
    days = [_record(DAY, turns, seed=seed) for seed in range(seeds)]
    figures = [figure for scene in (*scenes, days[0]) for figure in _scene(scene)]
    figures += _all_scenes([*scenes, *days], counted=not quick)
    figures += _day(days, goals=not quick)
    requests = sum(len(day.requests) for day in days) // seeds
    notes = [
        "changed: requests that do not begin with the one before, byte for byte; unexplained: those of them for which",
        "limpet.session.breaks (what /context says) names no reason. x: cost of the input, uncached = 1",
        f"the day: mean of {seeds}, {requests} requests each; its money is that of the input at list prices",
        "floor: of every request all that some request within the cache's life began with is read",
    ]
    return Report("Prompt caches", figures, notes)


def _record(name: str, turns: int, *, seed: int = 0) -> Recorded:
    with folder() as home:
        return asyncio.run(record(name, home / "home", turns=turns, seed=seed))


# --- scenes -------------------------------------------------------------------------------------------------------


def _scene(scene: Recorded) -> list[Figure]:
    counter = Counter()
    claude = _bills([counter.priced(one.at, of_anthropic(one.anthropic)) for one in scene.requests], "Sonnet 5")
    gpt = _bills([counter.priced(one.at, of_chat(one.chat)) for one in scene.requests], "GPT-5.5")
    changed = changes(scene)
    return [
        Figure(scene.name, "requests", len(scene.requests), ""),
        Figure(scene.name, "changed", len(changed), ""),
        Figure(scene.name, "unexplained", len(unexplained(scene, changed)), "", 0),
        Figure(scene.name, "read, Sonnet 5", 100 * _read(claude), "%"),
        Figure(scene.name, "cost, Sonnet 5", _cost(claude), "x"),
        Figure(scene.name, "read, GPT-5.5", 100 * _read(gpt), "%"),
        Figure(scene.name, "cost, GPT-5.5", _cost(gpt), "x"),
    ]


def _all_scenes(scenes: Sequence[Recorded], *, counted: bool) -> list[Figure]:
    pairs = sum(len(scene.requests) - 1 for scene in scenes)
    share = 100 * sum(len(changes(scene)) for scene in scenes) / pairs
    return [
        Figure("all of them", "requests", sum(len(scene.requests) for scene in scenes), ""),
        Figure("all of them", "changed, of all", share, "%", CHANGED if counted else None),
    ]


def changes(scene: Recorded) -> list[tuple[Asked, Asked]]:
    """Neighbouring requests of which, on either wire, the later does not begin with the earlier."""
    return [
        (before, after)
        for before, after in pairwise(scene.requests)
        if not (_goes_on(before.anthropic, after.anthropic) and _goes_on(before.chat, after.chat))
    ]


def unexplained(scene: Recorded, changed: Sequence[tuple[Asked, Asked]]) -> list[tuple[Asked, Asked]]:
    """Those changes in whose time the log names none."""
    return [
        (before, after) for before, after in changed if not any(before.at <= at <= after.at for at, _ in scene.breaks)
    ]


def _goes_on(before: bytes, after: bytes) -> bool:
    return _content(after).startswith(_content(before).removesuffix(b"]}"))


def _content(body: bytes) -> bytes:
    """Tools, system and messages of a body up to the last block: what caches go by. Marks are no content."""
    for mark in (b',"cache_control":{"type":"ephemeral","ttl":"1h"}', b',"cache_control":{"type":"ephemeral"}'):
        body = body.replace(mark, b"")
    return body[body.index(b'"tools":') : body.rindex(b'],"stream":')]


# --- the day ------------------------------------------------------------------------------------------------------


def _day(days: Sequence[Recorded], *, goals: bool) -> list[Figure]:
    figures: list[Figure] = []
    counter = Counter()
    chats = [[counter.priced(one.at, of_chat(one.chat)) for one in day.requests] for day in days]
    for name, layout in LAYOUTS.items():
        counter = Counter()
        others = [[counter.priced(one.at, layout(of_anthropic(one.anthropic))) for one in day.requests] for day in days]
        for label, provider in PROVIDERS.items():
            own = name == "Limpet" and provider.floor is not None
            bills = [bill for day in (chats if own else others) for bill in _bills(day, label)]
            floor = _floor(chats, provider) if own else 0.0
            goal = (floor * ABOVE_FLOOR if own else COST) if name == "Limpet" and goals else None
            figures.append(Figure(name, label, _cost(bills), "x", goal))
            if label == "Sonnet 5":
                money = sum(bill.cost for bill in bills) * provider.price.input / 1e6 / len(days)
                figures.append(Figure(name, "Sonnet 5", money, "$ a day"))
                figures.append(Figure(name, "read, Sonnet 5", 100 * _read(bills), "% of input"))
    for label, provider in PROVIDERS.items():
        if provider.floor is not None:
            figures.append(Figure("floor", label, _floor(chats, provider), "x"))
    return figures


def _floor(days: Sequence[Sequence[Priced]], provider: Provider) -> float:
    assert provider.floor is not None
    bills: list[Bill] = []
    for day in days:
        cache = provider.floor(provider.read)
        bills += [cache.ask(request) for request in day]
    return _cost(bills)


def _bills(requests: Sequence[Priced], label: str) -> list[Bill]:
    provider = PROVIDERS[label]
    cache = provider.cache(provider.read)
    return [cache.ask(request) for request in requests]


def _cost(bills: Sequence[Bill]) -> float:
    return sum(bill.cost for bill in bills) / sum(bill.total for bill in bills)


def _read(bills: Sequence[Bill]) -> float:
    return sum(bill.read for bill in bills) / sum(bill.total for bill in bills)
