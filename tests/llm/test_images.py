"""Pictures: whatever form the service answers in, bytes of a known kind come out."""

from __future__ import annotations

import pytest
from msgspec import structs

from limpet.config.schema import ImagePurpose
from limpet.errors import InputError, LimpetError, RateLimitError, RequestError, UpstreamError
from limpet.testing.fakes import FakeMedia, Reply
from limpet.testing.fakes.media import png
from limpet.types.ports import Media
from tests.llm.media import SETTINGS, Ledger, in_studio


def drawn(server: FakeMedia, prompt: str = "a cat", *, ledger: Ledger | None = None, size: str = "", **more: str):
    purpose = ImagePurpose(**{"model": "openai/gpt-image-1", **more})
    settings = structs.replace(SETTINGS, image=purpose)
    return in_studio(server, lambda studio: studio.make_image(prompt, size=size), settings=settings, ledger=ledger)


@pytest.mark.parametrize(
    ("model", "cost"),
    [("gpt-image-1", 160_500), ("gpt-image-2.6-flare", 120_500), ("dall-e-3", None), ("grok-2-image", None)],
)
def test_a_picture_comes_in_base64_or_from_an_address(model: str, cost: int | None):
    ledger = Ledger()
    assert drawn(FakeMedia(), model=f"openai/{model}", ledger=ledger) == Media(png(), "image/png")
    assert ledger.settled == [("done", cost)]


def test_size_and_quality_are_sent_as_wished():
    server = FakeMedia()
    drawn(server, size="1536x1024", quality="low")
    assert server.requests[0].fields["size"] == "1536x1024"
    assert server.requests[0].fields["quality"] == "low"


@pytest.mark.parametrize(
    ("prompt", "size", "model", "words"),
    [
        (" ", "", "openai/gpt-image-1", "nothing to draw"),
        ("x" * 4001, "", "openai/dall-e-3", "takes 4,000"),
        ("x", "10x10", "openai/gpt-image-1", "Sizes"),
        ("x", "", "gemini/imagen", "OpenAI-compatible"),
    ],
)
def test_what_the_model_does_not_take_is_not_sent(prompt: str, size: str, model: str, words: str):
    server = FakeMedia()
    with pytest.raises(InputError) as caught:
        drawn(server, prompt, size=size, model=model)
    assert words in caught.value.present()
    assert not server.requests


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply(status=429, body={}, headers={"retry-after": "90"}), RateLimitError),
        (Reply(status=400, body={"error": {"message": "safety", "code": "moderation_blocked"}}), RequestError),
        (Reply(status=500, body={}), UpstreamError),
        (Reply(body={"data": []}), UpstreamError),
        (Reply(body={"data": [{"b64_json": "%%%"}]}), UpstreamError),
        (Reply(body={"data": [{"b64_json": "aGVsbG8="}]}), UpstreamError),
        (Reply(body={"data": [{"url": "http://10.0.0.1/x.png"}]}), UpstreamError),
        (Reply(cut_after=1), UpstreamError),
    ],
    ids=["429", "refused", "500", "no data", "broken base64", "no picture", "strange address", "cut"],
)
def test_failures_are_of_the_same_tree_as_those_of_models(reply: Reply, error: type[LimpetError]):
    with pytest.raises(error):
        drawn(FakeMedia([reply, reply]))
