"""What every wire does with a failure: it learns from it, leaves a trace, and says what it has cost."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import aclosing

import pytest
from msgspec import structs

from limpet.errors import ContextOverflowError, ModelError, RequestError, UpstreamError
from limpet.llm.exchange import Tally
from limpet.llm.http import Deadlines
from limpet.llm.metered import Metered
from limpet.llm.wire.service import MOST_LESSONS
from limpet.testing.fakes import Reply
from limpet.testing.wires import answer_of, ask, collect, user, wire_at
from limpet.types.event import Notice, TextDelta
from limpet.types.message import Request, Sampling
from limpet.types.ports import Known
from limpet.types.profile import Price, Profile
from limpet.types.trace import Trace
from limpet.types.usage import NO_USAGE, Usage
from tests.wire.services import SERVICES, WIRES

DONE = Reply(text=("done",))
REFUSED = Reply(status=400, body={"error": {"message": "no"}})
PRICE = Price(input=1_000_000, output=2_000_000)
every_wire = pytest.mark.parametrize("wire", WIRES)


class Memory:
    """`Lessons` and `Traces` in memory."""

    def __init__(self) -> None:
        self.refused: list[str] = []
        self.window = 0
        self.traces: list[Trace] = []

    def known(self, profile: Profile) -> Known:
        return Known(tuple(self.refused), self.window)

    async def refuses(self, profile: Profile, field: str, *, reason: str) -> None:
        self.refused.append(field)

    async def has_window(self, profile: Profile, tokens: int, *, reason: str) -> None:
        self.window = tokens

    async def keep(self, trace: Trace) -> None:
        self.traces.append(trace)


class Ledger:
    """A `Meter` that keeps what was settled."""

    def __init__(self) -> None:
        self.settled: list[tuple[Usage, bool]] = []

    async def reserve(
        self, request: Request, profile: Profile, *, at_most: int, expected: Usage = NO_USAGE
    ) -> tuple[str, str]:
        return "r", ""

    async def settle(self, reservation: str, usage: Usage, *, state: str, estimated: bool = False) -> None:
        self.settled.append((usage, estimated))


@every_wire
def test_a_refused_field_is_left_out_at_once_and_ever_after(wire: str):
    memory = Memory()
    request = ask(sampling=Sampling(temperature=0.5, max_tokens=900))

    async def run():
        service = SERVICES[wire]
        async with service.start([DONE] * 2, forbidden=("temperature",)) as server:
            async with wire_at(server, service.profile, witness=(memory, memory)) as model:
                events = await collect(model, request)
            async with wire_at(server, service.profile, witness=(memory, memory)) as model:  # a restart
                await answer_of(model, request)
            return events, server.requests

    events, seen = asyncio.run(run())
    assert events[-1].message.text == "done"
    assert ["`temperature`" in event.text for event in events if isinstance(event, Notice)] == [True]
    assert memory.refused == ["temperature"]
    assert [b"temperature" in one.raw for one in seen] == [True, False, False]
    assert all(b"900" in one.raw for one in seen)


def test_no_more_than_a_few_fields_of_one_request_are_given_up():
    async def run():
        refusal = lambda name: Reply(status=400, body={"error": {"message": f"Unknown parameter: '{name}'"}})  # noqa: E731
        names = ("temperature", "max_tokens", "max_completion_tokens", "stream_options", "prompt_cache_key")
        assert len(names) > MOST_LESSONS
        profile = structs.replace(SERVICES["openai_chat"].profile, cache_key=True)
        async with SERVICES["openai_chat"].start([refusal(name) for name in names]) as server:
            async with wire_at(server, profile) as model:
                with pytest.raises(RequestError, match="prompt_cache_key"):
                    await answer_of(model, ask(sampling=Sampling(temperature=1, max_tokens=9)))
            return server.requests

    assert len(asyncio.run(run())) == 5


@every_wire
def test_a_failure_leaves_a_trace_without_its_key(wire: str):
    memory = Memory()

    async def run():
        service = SERVICES[wire]
        reply = Reply(status=503, body={"error": {"message": "overloaded, come back"}}, headers={"X-Trace": "t1"})
        async with service.start([reply]) as server:
            async with wire_at(server, service.profile, witness=(None, memory)) as model:
                with pytest.raises(UpstreamError):
                    await answer_of(model, ask(user("find this")))
            return server.key

    key = asyncio.run(run())
    (trace,) = memory.traces
    assert "find this" in trace.request.text
    assert "overloaded, come back" in trace.answer.text
    assert (trace.status, trace.answer_headers["X-Trace"], trace.session) == (503, "t1", "s1")
    assert trace.url.startswith("http://127.0.0.1")
    assert key not in repr(trace)


@every_wire
def test_a_broken_stream_leaves_what_came_of_it(wire: str):
    memory = Memory()

    async def run():
        service = SERVICES[wire]
        async with service.start([Reply(raw=("data: {oops\n\n",))]) as server:
            async with wire_at(server, service.profile, witness=(None, memory)) as model:
                with pytest.raises(UpstreamError):
                    await answer_of(model, ask())

    asyncio.run(run())
    assert "oops" in memory.traces[0].answer.text


@every_wire
def test_an_overflow_teaches_the_window_where_it_is_named(wire: str):
    memory = Memory()

    async def run():
        service = SERVICES[wire]
        async with service.start([], max_characters=6_000) as server:
            async with wire_at(server, service.profile, witness=(memory, memory)) as model:
                with pytest.raises(ContextOverflowError) as caught:
                    await answer_of(model, ask(user("x" * 9_000)))
                return caught.value.limit, model.profile.window

    limit, window = asyncio.run(run())
    assert memory.window == window == limit


def metered(wire: str, reply: Reply | None, *, stop_after: int = 0) -> tuple[Usage, bool]:
    """What a request that fails is settled with; `stop_after`: the owner stops after so many deltas."""
    ledger = Ledger()

    async def run():
        service = SERVICES[wire]
        profile = structs.replace(service.profile, price=PRICE)
        async with service.start([reply] if reply else []) as server:
            if reply is None:
                await server.__aexit__()
            deadlines = Deadlines(connect=0.2, first_byte=0.1, idle=0.3)
            async with wire_at(server, profile, deadlines=deadlines) as bare:
                model = Metered(bare, meter=ledger)
                async with aclosing(model.stream(ask(user("a question of some words")))) as events:
                    deltas = 0
                    async for event in events:
                        deltas += isinstance(event, TextDelta)
                        if deltas and deltas == stop_after:
                            return

    with contextlib.suppress(ModelError):
        asyncio.run(run())
    return ledger.settled[-1]


@every_wire
def test_a_cut_answer_costs_its_question_and_what_came(wire: str):
    cut = Reply(text=("some words ", *["and more "] * 5), cut_after=4)
    used, estimated = metered(wire, cut)
    assert estimated
    assert used.input > 10
    assert used.output > 0
    assert used.cost == used.input + 2 * used.output


@every_wire
def test_a_stopped_answer_costs_too(wire: str):
    used, estimated = metered(wire, Reply(text=("some words ", "and more ", "x"), stall_after=6), stop_after=1)
    assert (estimated, used.input > 10, used.output > 0) == (True, True, True)


def test_what_the_service_counted_comes_before_estimates():
    used, _ = metered("anthropic", Reply(text=("a", "b", "c"), usage=(777, 9), cut_after=3))
    assert used.input == 777


@every_wire
@pytest.mark.parametrize("reply", [REFUSED, Reply(status=500), Reply(body={"error": {"message": "upstream"}}), None])
def test_what_was_refused_or_never_arrived_costs_nothing(wire: str, reply: Reply | None):
    assert metered(wire, reply) == (NO_USAGE, False)


@every_wire
def test_silence_after_the_request_costs_the_question(wire: str):
    used, estimated = metered(wire, Reply(delay=30))
    assert (estimated, used.input > 10, used.output) == (True, True, 0)


def test_a_tally_begins_with_nothing():
    tally = Tally()
    assert (tally.owed, tally.count()) == (False, NO_USAGE)
