from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from aiohttp import web
from msgspec import structs

from limpet.llm.local import checked, find_local, models_at, true_window
from limpet.llm.profiles import profile_of, with_window


@asynccontextmanager
async def server(answers: dict[str, object]) -> AsyncGenerator[str, None]:
    """A server that gives JSON by path; yields its root."""

    async def answer(request: web.Request) -> web.Response:
        found = answers.get(request.path)
        return web.json_response(found) if found is not None else web.Response(status=404)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def window(provider: str, answers: dict[str, object], model: str = "m") -> int:
    async def run():
        async with server(answers) as root:
            return await true_window(profile_of(provider, model, base_url=f"{root}/v1"))

    return asyncio.run(run())


SHOW = {"parameters": "temperature 1\nnum_ctx    8192", "model_info": {"llama.context_length": 131072}}


def test_each_server_tells_its_window_in_its_own_way():
    assert window("ollama", {"/api/ps": {"models": [{"name": "m", "context_length": 4096}]}, "/api/show": SHOW}) == 4096
    assert window("ollama", {"/api/ps": {"models": []}, "/api/show": SHOW}) == 8192
    assert window("ollama", {"/api/show": {**SHOW, "parameters": ""}}) == 4096
    assert window("ollama", {"/api/show": {"model_info": {"x.context_length": 2048}}}) == 2048
    assert window("lmstudio", {"/api/v0/models": {"data": [{"id": "m", "loaded_context_length": 6000}]}}) == 6000
    assert window("llamacpp", {"/props": {"default_generation_settings": {"n_ctx": 16384}}}) == 16384
    assert window("vllm", {"/v1/models": {"data": [{"id": "m", "max_model_len": 32768}]}}) == 32768
    assert window("vllm", {}) == 0


def test_the_first_chat_model_of_the_first_server_is_taken():
    listed = {"data": [{"id": "nomic-embed-text"}, {"id": "bge-m3"}, {"id": "qwen3", "max_model_len": 9000}]}

    async def run():
        async with server({}) as empty, server({"/v1/models": listed}) as good:
            return await find_local(
                [("ollama", "http://127.0.0.1:1/v1"), ("lmstudio", f"{empty}/v1"), ("vllm", f"{good}/v1")]
            )

    profile = asyncio.run(run())
    assert profile is not None
    assert (profile.reference, profile.window) == ("vllm/qwen3", 9000)


def test_only_this_machine_is_asked():
    assert asyncio.run(find_local([("vllm", "http://192.0.2.1:8000/v1")])) is None


def test_a_server_that_is_no_model_server_offers_nothing():
    async def run():
        async with server({"/v1/models": {"hello": "world"}}) as root:
            return await models_at(f"{root}/v1")

    assert asyncio.run(run()) == []


def test_a_server_that_is_gone_names_no_window():
    profile = structs.replace(profile_of("ollama", "m"), base_url="http://127.0.0.1:1/v1")
    assert asyncio.run(true_window(profile)) == 0


def test_a_smaller_true_window_is_used_and_told():
    async def run():
        async with server({"/api/show": SHOW}) as root:
            profile = structs.replace(profile_of("ollama", "m", base_url=f"{root}/v1"), window=131_072)
            return await checked(profile), await checked(with_window(profile, 4_096))

    (smaller, told), (same, silent) = asyncio.run(run())
    assert smaller.window == 8192
    assert "window of 8192 tokens, not 131072" in told
    assert "OLLAMA_CONTEXT_LENGTH" in told
    assert (same.window, silent) == (4096, "")
    assert asyncio.run(checked(profile_of("openai", "gpt-4o")))[1] == ""


def test_a_server_of_no_known_kind_is_asked_in_all_ways():
    listed = {"/v1/models": {"data": [{"id": "m", "max_model_len": 7_000}]}}
    assert window("lab", listed) == 7_000
    assert window("sglang", listed) == 7_000
    assert window("lab", {"/props": {"default_generation_settings": {"n_ctx": 6_000}}}) == 6_000
    assert window("lab", {"/api/v0/models": {"data": [{"id": "m", "max_context_length": 5_000}]}}) == 5_000
    assert window("lab", {"/api/show": SHOW}) == 8_192
    assert window("lab", {}) == 0


def test_a_server_that_tells_nothing_gets_an_assumed_window():
    async def run():
        async with server({}) as root:
            return await checked(profile_of("lab", "m", base_url=f"{root}/v1"))

    profile, told = asyncio.run(run())
    assert profile.window == 32_768
    assert "lab/m is not known: 32,768 tokens are assumed" in told
