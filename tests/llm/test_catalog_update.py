from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from limpet.errors import InputError
from limpet.llm.catalog import Book, Dollars, Facts
from limpet.llm.catalog_update import MOST_BYTES, changes, load, read

DEV = {
    "moonshotai": {
        "id": "moonshotai",
        "name": "Moonshot",
        "models": {
            "kimi-k9": {
                "id": "kimi-k9",
                "reasoning": True,
                "limit": {"context": 500_000, "output": 64_000},
                "cost": {"input": 1, "output": 4.5, "cache_read": 0.1},
                "modalities": {"input": ["text", "image", "smell"], "output": ["text"]},
            },
            "broken": {"limit": {"context": "a lot"}},
            "nothing": {"id": "nothing"},
        },
    },
    "somebody-else": {"models": {"x": {"limit": {"context": 1}}}},
}
LITE = {
    "sample_spec": {"litellm_provider": "one of …", "mode": "chat", "max_input_tokens": "max tokens"},
    "gpt-9": {
        "litellm_provider": "openai",
        "mode": "chat",
        "max_input_tokens": 900_000,
        "max_output_tokens": "128000",
        "input_cost_per_token": 1.25e-06,
        "output_cost_per_token": 1e-05,
        "supports_vision": True,
        "supports_reasoning": True,
    },
    "groq/openai/gpt-oss-120b": {"litellm_provider": "groq", "mode": "chat", "max_input_tokens": 131_072},
    "text-embedding-9": {"litellm_provider": "openai", "mode": "embedding", "max_input_tokens": 8_191},
    "whatever": {"litellm_provider": "unheard_of", "mode": "chat", "max_input_tokens": 1},
}


def book_of(value: object) -> Book:
    return read(msgspec.json.encode(value), source="there", today="2026-11-30")


def test_models_dev_is_understood():
    book = book_of(DEV)
    expected = Facts(
        window=500_000,
        max_output=64_000,
        input=("text", "image"),
        output=("text",),
        thinking=True,
        price=Dollars(1, 4.5, cache_read=0.1),
    )
    assert (book.date, book.source) == ("2026-11-30", "there")
    assert book.models == {"moonshot": {"kimi-k9": expected}}


def test_litellm_is_understood():
    book = book_of(LITE)
    gpt = book.models["openai"]["gpt-9"]
    assert (gpt.window, gpt.max_output, gpt.input, gpt.thinking) == (900_000, 128_000, ("text", "image"), True)
    assert gpt.price == Dollars(1.25, 10)
    assert book.models["groq"] == {"openai/gpt-oss-120b": Facts(window=131_072)}
    assert set(book.models["openai"]) == {"gpt-9"}


def test_our_own_form_is_taken_as_it_is():
    book = Book(date="2026-01-02", source="us", models={"lab": {"m": Facts(window=1_000)}})
    assert book_of(book) == book


def test_a_provider_of_ones_own_is_taken_too():
    data = msgspec.json.encode({"lab": {"models": {"m": {"limit": {"context": 4_096}}}}})
    book = read(data, source="there", today="2026-11-30", further={"lab": "lab"})
    assert book.models == {"lab": {"m": Facts(window=4_096)}}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"<html>", "is no catalog"),
        (b"[1]", "is no catalog"),
        (b"{}", "no model of a provider"),
        (b'{"a": 1, "b": {"models": 2}}', "no model of a provider"),
        (b'{"date": "d", "source": "s", "models": {"openai": {"m": {"window": "x"}}}}', "window"),
        (b'{"date": "d", "source": "s", "models": {"openai": {"m": {"windw": 5}}}}', "windw"),
    ],
)
def test_what_is_no_catalog_is_refused_with_the_reason(data: bytes, words: str):
    with pytest.raises(InputError, match=words):
        read(data, source="there", today="2026-11-30")


def test_differences_are_named():
    old = Book(
        date="a", source="", models={"p": {"same": Facts(window=1), "new": Facts(window=1), "gone": Facts(window=1)}}
    )
    new = Book(
        date="b", source="", models={"p": {"same": Facts(window=1), "new": Facts(window=2), "more": Facts(window=3)}}
    )
    found = {change.reference: change.sign for change in changes(old, new)}
    assert found == {"p/new": "~", "p/more": "+", "p/gone": "-"}
    assert all(change.sign != "-" for change in changes(old, new, removed=False))


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("ftp://x.test/a", "only http"),
        ("/nowhere/at/all.json", "cannot be read"),
        ("http://127.0.0.1:1/x", "cannot be"),
    ],
)
def test_what_cannot_be_had_is_said(where: str, words: str):
    with pytest.raises(InputError, match=words):
        asyncio.run(load(where))


def test_a_file_may_not_be_endless(tmp_path: Path):
    path = tmp_path / "big"
    with path.open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with pytest.raises(InputError, match="larger than 32 MB"):
        asyncio.run(load(str(path)))


def test_an_address_is_read_and_a_refusal_is_said():
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=b"data") if request.path == "/api.json" else web.Response(status=404)

    async def run():
        app = web.Application()
        app.router.add_get("/{path:.*}", answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            root = f"http://127.0.0.1:{runner.addresses[0][1]}"
            assert await load(f"{root}/api.json") == b"data"
            with pytest.raises(InputError, match="answered 404"):
                await load(f"{root}/other")
        finally:
            await runner.cleanup()

    asyncio.run(run())
