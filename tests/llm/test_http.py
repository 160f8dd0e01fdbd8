"""Bodies reach the server as they are, however large and in however many pieces."""

from __future__ import annotations

import asyncio

import pytest

from limpet.errors import ModelError
from limpet.llm.http import Http
from limpet.testing.fakes.openai import FakeOpenAI


@pytest.mark.parametrize("sizes", [(10, 0, 20), (70_000, 1, 400_000), (1 << 21,)])
def test_the_server_gets_the_pieces_as_one_body(sizes: tuple[int, ...]) -> None:
    pieces = [bytes([65 + at]) * size for at, size in enumerate(sizes)]

    async def scene() -> bytes:
        async with FakeOpenAI([]) as server:
            http = Http("openai")
            try:
                with pytest.raises(ModelError):  # it is no JSON
                    async with http.post(f"{server.base_url}/chat/completions", pieces, headers={}):
                        pass
            finally:
                await http.close()
            return server.requests[0].raw

    assert asyncio.run(scene()) == b"".join(pieces)
