"""Whatever happens to a session, nothing of it is lost and every provider takes what is projected."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.llm.prefix import PrefixCache
from limpet.llm.wire import anthropic, bedrock, gemini, openai_chat, openai_responses
from limpet.session.log import Log
from limpet.session.project import Projection, project
from limpet.session.tree import path, visible
from limpet.testing.fakes.anthropic import AnthropicService
from limpet.testing.fakes.bedrock import BedrockService
from limpet.testing.fakes.gemini import GeminiService
from limpet.testing.fakes.openai import OpenAIService
from limpet.testing.fakes.responses import ResponsesService
from limpet.testing.fakes.script import Rules, Seen
from limpet.testing.fakes.server import Service
from limpet.testing.wires import ask, tool
from limpet.types.codec import decode_payload, encode_payload
from limpet.types.entry import Compaction, Entry, ImageAged, Leaf, Payload, Prune
from limpet.types.message import Request
from tests.session.histories import PAYLOADS, any_history, asked
from tests.session.logs import any_log
from tests.session.test_project import check
from tests.wire.services import SERVICES


class Album:
    """A `Blobs` that has every picture."""

    async def put(self, data: bytes) -> str:
        return "b"

    def path(self, blob: str) -> str:
        raise FileNotFoundError(blob)

    def get(self, blob: str) -> bytes:
        return b"picture"


ENCODERS = {
    "openai_chat": openai_chat.encode_request,
    "openai_responses": openai_responses.encode_request,
    "anthropic": anthropic.encode_request,
    "gemini": gemini.encode_request,
    "bedrock": bedrock.encode_request,
}
FAKES: dict[str, Callable[[], Service]] = {
    "openai_chat": OpenAIService,
    "openai_responses": ResponsesService,
    "anthropic": AnthropicService,
    "gemini": GeminiService,
    "bedrock": BedrockService,
}
ROWS = [name for name in SERVICES if name != "azure"]  # OpenAI's wire at another address


def accept(row: str, requests: list[Request]) -> None:
    """Encode the requests of one session with the wire of `row`; raises `Refused` when its strict fake would."""
    service, wire = SERVICES[row], SERVICES[row].profile.wire
    rules = Rules(**service.rules)
    headers = {"authorization": f"Bearer {rules.key}", "x-api-key": rules.key, "x-goog-api-key": rules.key}
    prefix, fake = PrefixCache(), FAKES[wire]()
    for request in requests:
        raw = b"".join(ENCODERS[wire](request, service.profile, prefix=prefix, blobs=Album()))
        body = msgspec.json.decode(raw, type=dict[str, object])
        path = f"/model/{service.profile.model}/converse-stream"
        fake.check(Seen(path, {**headers, "anthropic-version": "1"}, raw, body, query="alt=sse"), rules)


@pytest.mark.parametrize("row", ROWS)
@given(log=st.one_of(any_history(), any_log()), cut=st.integers(0, 30))
def test_every_wire_takes_any_session_at_any_crash(row: str, log: list[Entry], cut: int) -> None:
    requests = [ask(*project(asked(entries)), tools=[tool("exec")]) for entries in (log[:cut], log)]
    accept(row, requests)


@given(any_history())
def test_every_entry_is_kept_or_named_in_the_summary(log: list[Entry]) -> None:
    summary, kept = visible(log)
    line = path(log)
    assert kept == line[len(line) - len(kept) :]
    named = set(summary.split())
    assert all(entry.id in named for entry in line[: len(line) - len(kept)])
    check(project(log))


@given(any_history(), st.data())
def test_a_log_taken_in_by_any_steps_says_the_same(log: list[Entry], data: st.DataObject) -> None:
    whole = Log(log)
    ends = sorted({0, len(log), *data.draw(st.lists(st.integers(0, len(log)), max_size=6))})
    growing, projection = Log(), Projection()
    for begin, end in pairwise(ends):
        growing.extend(log[begin:end])
        projection.extend(log[begin:end])
    assert growing.messages() == projection.messages() == whole.messages()
    assert growing.pending() == whole.pending()
    for name in ("leaf", "prompt", "model", "seen", "told", "measured", "answered", "pauses"):
        assert getattr(growing, name) == getattr(whole, name), name


@given(any_history())
def test_only_what_changes_the_past_costs_more_than_one_fold(log: list[Entry]) -> None:
    growing = Log()
    for entry in log:
        before = growing.folds
        growing.extend([entry])
        if not isinstance(entry.payload, Compaction | Prune | ImageAged | Leaf):
            assert growing.folds == before + 1


@pytest.mark.parametrize("kind", PAYLOADS)
@given(data=st.data())
def test_decode_of_encode_is_the_identity_for_every_kind(kind: type[Payload], data: st.DataObject) -> None:
    payload = data.draw(PAYLOADS[kind])
    stored = encode_payload(payload)
    assert decode_payload(stored) == payload
    assert encode_payload(decode_payload(stored)) == stored


def test_no_kind_is_forgotten() -> None:
    assert set(PAYLOADS) == set(get_args(Payload))
