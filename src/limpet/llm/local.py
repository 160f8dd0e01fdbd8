"""Model servers on one's own machine: which run, what they offer, and how large their window truly is.

Only loopback addresses are asked here, in parallel and for at most half a second, except a server that was configured.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct

from limpet.llm.http import is_loopback
from limpet.llm.profiles import assumed, profile_of, services, with_window
from limpet.types.profile import Profile

T = TypeVar("T")
PROBE_SECONDS = 0.5
OLLAMA_DEFAULT_WINDOW = 4_096
CUTS_SILENTLY = ("ollama",)
"""Servers that drop the beginning of what does not fit, without a word."""
_RAISE = {
    "ollama": "set OLLAMA_CONTEXT_LENGTH for the server, or `num_ctx` in the model's Modelfile",
    "lmstudio": "load the model with a larger context length",
    "llamacpp": "start the server with a larger `--ctx-size`",
    "vllm": "start the server with a larger `--max-model-len`",
    "sglang": "start the server with a larger `--context-length`",
}
_NO_CHAT = re.compile(r"embed|rerank|bge-|whisper|tts|clip|moderation|dall-e|guard", re.I)
_NUM_CTX = re.compile(r"^num_ctx\s+(\d+)", re.M)


class _Model(Struct):
    id: str = ""
    type: str = ""
    max_model_len: int | None = None
    max_context_length: int | None = None
    loaded_context_length: int | None = None


class _Models(Struct):
    data: list[_Model] = []


class _OllamaModel(Struct):
    name: str = ""
    model: str = ""
    context_length: int | None = None


class _OllamaModels(Struct):
    models: list[_OllamaModel] = []


class _OllamaShow(Struct):
    parameters: str = ""
    model_info: dict[str, object] = {}


class _Generation(Struct):
    n_ctx: int | None = None


class _Props(Struct):
    default_generation_settings: _Generation | None = None


async def find_local(addresses: Sequence[tuple[str, str]] | None = None) -> Profile | None:
    """The first chat model of the first local server that answers, with its true window; None without one.

    `addresses` are pairs of provider and base URL; by default the usual ports of every local provider.
    """
    if addresses is None:
        addresses = [(name, service.base_url) for name, service in services().items() if service.ports]
    addresses = [pair for pair in addresses if is_loopback(pair[1])]
    found = await asyncio.gather(*(_first(provider, url) for provider, url in addresses))
    return next((profile for profile in found if profile is not None), None)


async def _first(provider: str, base_url: str) -> Profile | None:
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            names = await models_at(base_url)
            if not names:
                return None
            profile = profile_of(provider, names[0], base_url=base_url)
            return with_window(profile, await true_window(profile))
    except (TimeoutError, OSError):
        return None


async def models_at(base_url: str, *, key: str = "") -> list[str]:
    """Names of the chat models that a Chat Completions service lists. Raises `OSError` when it cannot be reached."""
    listed = await _get(f"{base_url.rstrip('/')}/models", _Models, key=key)
    names = [model.id for model in listed.data if model.type not in ("embeddings", "embedding")] if listed else []
    return [name for name in names if name and not _NO_CHAT.search(name)]


async def true_window(profile: Profile, *, key: str = "") -> int:
    """The window in tokens that the server itself names for the model, 0 when it names none.

    A server that may be any of them is asked in the ways of all.
    """
    root = profile.base_url.rstrip("/").removesuffix("/v1")
    ways = _WAYS.get(profile.provider, (_listed_window, _llamacpp_window, _lmstudio_window, _ollama_window))
    try:
        for ask in ways:
            if window := await ask(root, profile.model, key):
                return window
    except OSError:
        pass
    return 0


async def checked(profile: Profile, *, key: str = "") -> tuple[Profile, str]:
    """`profile` with the window its server truly has, else with an assumed one where none is known.

    With a sentence for the owner where that is news.
    """
    if profile.wire == "embedded":
        return profile, ""
    window = 0
    if profile.local:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PROBE_SECONDS):
                window = await true_window(profile, key=key)
    if not 0 < window < profile.window:
        return assumed(with_window(profile, window))
    name = services()[profile.provider].name if profile.provider in services() else profile.provider
    how = _RAISE.get(profile.provider, "start the server with a larger context")
    told = f"{name} runs {profile.model} with a window of {window} tokens, not {profile.window}. To raise it: {how}."
    return with_window(profile, window), told


async def _ollama_window(root: str, model: str, key: str) -> int:
    """A loaded model says what it runs with; else the model's own `num_ctx`, else Ollama's default."""
    running = await _get(f"{root}/api/ps", _OllamaModels, key=key)
    for item in running.models if running else []:
        if model in (item.name, item.model) and item.context_length:
            return item.context_length
    show = await _get(f"{root}/api/show", _OllamaShow, key=key, body={"model": model})
    if show is None or not (show.model_info or show.parameters):
        return 0
    most = [value for name, value in show.model_info.items() if name.endswith(".context_length")]
    asked = _NUM_CTX.search(show.parameters)
    window = int(asked[1]) if asked else OLLAMA_DEFAULT_WINDOW
    return min([window, *(value for value in most if isinstance(value, int) and value > 0)])


async def _lmstudio_window(root: str, model: str, key: str) -> int:
    listed = await _get(f"{root}/api/v0/models", _Models, key=key)
    for item in listed.data if listed else []:
        if item.id == model:
            return item.loaded_context_length or item.max_context_length or 0
    return 0


async def _llamacpp_window(root: str, model: str, key: str) -> int:
    props = await _get(f"{root}/props", _Props, key=key)
    generation = props.default_generation_settings if props else None
    return (generation.n_ctx if generation else None) or 0


async def _listed_window(root: str, model: str, key: str) -> int:
    """vLLM and SGLang say it in the list of models."""
    listed = await _get(f"{root}/v1/models", _Models, key=key)
    return next((item.max_model_len or 0 for item in (listed.data if listed else []) if item.id == model), 0)


_WAYS = {
    "ollama": (_ollama_window,),
    "lmstudio": (_lmstudio_window,),
    "llamacpp": (_llamacpp_window,),
    "vllm": (_listed_window,),
    "sglang": (_listed_window,),
}


async def _get(url: str, kind: type[T], *, key: str = "", body: object = None) -> T | None:
    """What `url` answers as `kind`, None when it answers something else. Raises `OSError` without a connection."""
    import aiohttp

    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5), headers=headers) as session,
            session.request("POST" if body else "GET", url, json=body, allow_redirects=False) as response,
        ):
            data = await response.read() if response.status == 200 else b""
    except aiohttp.ClientError as error:
        raise OSError(str(error)) from error
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError:
        return None
