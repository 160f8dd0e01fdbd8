"""Failover: what is tried, what rests, what is said."""

from __future__ import annotations

import asyncio

import pytest

from limpet.errors import (
    BillingError,
    ContextOverflowError,
    CredentialError,
    ModelError,
    NoCandidateError,
    RateLimitError,
    RequestError,
    UnreachableError,
    UpstreamError,
)
from limpet.llm.failover import Candidate, Failover
from limpet.testing.clock import FakeClock
from limpet.testing.scripted import ScriptedModel, Step
from limpet.testing.wires import ask, user
from limpet.types.event import Done, ModelEvent, Notice
from limpet.types.profile import Profile


class MemoryRests:
    def __init__(self) -> None:
        self.kept: dict[str, tuple[int, str]] = {}

    def look(self, name: str) -> tuple[int, str]:
        return self.kept.get(name, (0, ""))

    async def rest(self, name: str, *, until: int, reason: str) -> None:
        self.kept[name] = (until, reason)


class Chain:
    """A failover over scripted models; `tried` counts requests per candidate."""

    def __init__(self, *candidates: tuple[str, str, Step]) -> None:
        self.clock = FakeClock()
        self.rests = MemoryRests()
        self.models: list[ScriptedModel] = []
        made: list[Candidate] = []
        for reference, credential, step in candidates:
            provider, _, name = reference.partition("/")
            model = ScriptedModel([step], profile=Profile(provider, "openai_chat", name), forever=True)
            self.models.append(model)
            made.append(Candidate(model, credential))
        self.model = Failover(made, rests=self.rests, clock=self.clock)

    async def ask(self) -> list[ModelEvent]:
        return [event async for event in self.model.stream(ask(user("hi")))]

    def answer(self) -> str:
        done = asyncio.run(self.ask())[-1]
        assert isinstance(done, Done)
        return done.message.text

    @property
    def tried(self) -> list[int]:
        return [len(model.requests) for model in self.models]


def test_the_first_answers_and_the_others_are_not_asked() -> None:
    chain = Chain(("a/x", "a", "from a"), ("b/y", "b", "from b"))
    assert chain.answer() == "from a"
    assert chain.tried == [1, 0]
    assert chain.rests.kept == {}


def test_c16_a_limited_provider_rests_as_long_as_it_asked_and_is_then_tried_again() -> None:
    limited = RateLimitError("slow down", provider="a", status=429, retry_after=1800)
    failing = UpstreamError("internal error", provider="b", status=500)
    chain = Chain(("a/p1", "a", limited), ("a/p2", "a", limited), ("b/p3", "b", failing), ("c/p4", "c", "from c"))
    assert chain.answer() == "from c"
    assert chain.tried == [1, 0, 1, 1]
    assert chain.answer() == "from c"
    assert chain.tried == [1, 0, 1, 2]
    chain.clock.advance(1801)
    chain.answer()
    assert chain.tried[0] == 2


def test_a_refused_key_rests_alone() -> None:
    chain = Chain(("a/x", "a", CredentialError("bad key")), ("a/x", "a#2", "second key"))
    assert chain.answer() == "second key"
    assert list(chain.rests.kept) == ["a"]


@pytest.mark.parametrize(
    "error", [BillingError("no credits"), UnreachableError("no route"), RequestError("no such model", status=404)]
)
def test_failures_that_another_model_may_not_have(error: ModelError) -> None:
    chain = Chain(("a/x", "a", error), ("b/y", "b", "from b"))
    assert chain.answer() == "from b"


@pytest.mark.parametrize("error", [RequestError("bad request", status=400), ContextOverflowError("too long")])
def test_failures_that_lie_in_the_request_are_not_passed_on(error: ModelError) -> None:
    chain = Chain(("a/x", "a", error), ("b/y", "b", "from b"))
    with pytest.raises(type(error)):
        asyncio.run(chain.ask())
    assert chain.tried == [1, 0]


def test_each_step_is_said() -> None:
    chain = Chain(("a/x", "a", UpstreamError("it broke")), ("b/y", "b", "from b"))
    notices = [event.text for event in asyncio.run(chain.ask()) if isinstance(event, Notice)]
    assert notices == ["a/x: it broke. Asking b/y instead."]


def test_when_all_fail_one_message_names_each_reason() -> None:
    chain = Chain(("a/x", "a", UpstreamError("it broke")), ("b/y", "b", BillingError("no credits")))
    with pytest.raises(NoCandidateError) as caught:
        asyncio.run(chain.ask())
    assert "- a/x: it broke" in str(caught.value)
    assert "- b/y: no credits" in str(caught.value)
    with pytest.raises(NoCandidateError, match="rests for another 30 s"):
        asyncio.run(chain.ask())
    assert chain.tried == [1, 1]


def test_a_single_candidate_fails_with_its_own_error_and_never_rests() -> None:
    chain = Chain(("a/x", "a", UpstreamError("it broke")))
    for _ in range(2):
        with pytest.raises(UpstreamError, match="it broke"):
            asyncio.run(chain.ask())
    assert chain.tried == [2]


def test_a_model_chosen_by_name_is_not_replaced_but_its_fallbacks_are_offered() -> None:
    failing = ScriptedModel([UpstreamError("down", provider="a")], profile=Profile("a", "openai_chat", "x"))
    model = Failover([Candidate(failing, "a")], rests=MemoryRests(), clock=FakeClock(), stand_ins=("b/y", "c/z"))

    async def main() -> None:
        async for _ in model.stream(ask(user("hi"))):
            pass

    with pytest.raises(UpstreamError) as raised:
        asyncio.run(main())
    assert "/model b/y" in raised.value.present()
    assert "c/z" in raised.value.present()
