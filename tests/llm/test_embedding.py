"""Texts to vectors at an OpenAI-compatible service."""

from __future__ import annotations

import pytest
from msgspec import structs

from limpet.config.schema import EmbeddingPurpose
from limpet.errors import InputError, UpstreamError
from limpet.llm.media.studio import Vectors
from limpet.testing.fakes import FakeMedia, Reply
from tests.llm.media import SETTINGS, Ledger, in_studio

EMBEDDING = structs.replace(SETTINGS, embedding=EmbeddingPurpose("openai/text-embedding-3-small"))


def test_each_text_gets_its_vector_in_order() -> None:
    server, ledger = FakeMedia(), Ledger()
    made = in_studio(
        server,
        lambda studio: Vectors(studio, "openai/text-embedding-3-small").embed(["abc", "a"]),
        settings=EMBEDDING,
        ledger=ledger,
    )
    assert made == [[3, 1], [1, 1]]
    assert server.refusals == []
    assert [state for state, _ in ledger.settled] == ["done"]


@pytest.mark.parametrize("body", [{"data": []}, {"data": [{"embedding": []}]}, {"nothing": 1}, {"error": "no"}])
def test_an_answer_without_the_vectors_is_an_error(body: dict[str, object]) -> None:
    server = FakeMedia([Reply(body=body)] * 5)
    with pytest.raises(UpstreamError):
        in_studio(server, lambda studio: studio.embed(["abc"]), settings=EMBEDDING)


def test_without_a_model_there_are_none() -> None:
    with pytest.raises(InputError, match="configured"):
        in_studio(FakeMedia(), lambda studio: studio.embed(["abc"]))
