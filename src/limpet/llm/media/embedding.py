"""Texts to vectors: `POST /embeddings`, as OpenAI, Ollama and most local servers have it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from limpet.errors import UpstreamError
from limpet.llm.media.desk import Desk, Errand, check_wire, decoded
from limpet.types.usage import Usage


class _Vector(Struct):
    embedding: list[float]
    index: int = 0


class _Used(Struct):
    prompt_tokens: int = 0


class _Vectors(Struct):
    data: list[_Vector]
    usage: _Used | None = None


async def embed(desk: Desk, texts: Sequence[str], *, session: str = "") -> Sequence[Sequence[float]]:
    """One vector for each text. Raises `InputError` where the service has none, `ModelError`, `BudgetError`."""
    profile = desk.profile
    check_wire(profile, "making vectors")
    body = msgspec.json.encode({"model": profile.model, "input": list(texts), "encoding_format": "float"})

    def read(answer: bytes) -> tuple[Sequence[Sequence[float]], Usage]:
        found = decoded(answer, _Vectors, provider=profile.provider)
        made = [one.embedding for one in sorted(found.data, key=lambda one: one.index)]
        if len(made) != len(texts) or len({len(vector) for vector in made}) > 1 or not all(made):
            raise UpstreamError(f"{len(made)} vectors came for {len(texts)} texts", provider=profile.provider)
        return made, Usage(input=found.usage.prompt_tokens if found.usage else 0)

    return await desk.run(Errand("/embeddings", (body,), session=session), read)
