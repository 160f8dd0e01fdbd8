"""A catalog from elsewhere: read from a file or an address, in our form or in one of the two that are usual.

The usual ones are `api.json` of models.dev and `model_prices_and_context_window.json` of LiteLLM; which one it is tells
its shape. Of both only the providers that are asked for are taken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar, get_args

import msgspec
from msgspec import Raw, Struct

from limpet.errors import InputError
from limpet.llm.catalog import Book, Dollars, Facts, Modality
from limpet.llm.profiles import services

T = TypeVar("T", bound=Struct)
MOST_BYTES = 32 << 20
SECONDS = 30.0
_MILLION = 1_000_000
_MODALITIES: frozenset[str] = frozenset(get_args(Modality))
FORMS = "Limpet's own form, api.json of models.dev, or model_prices_and_context_window.json of LiteLLM"


class _Limit(Struct):
    context: int | None = None
    output: int | None = None


class _Cost(Struct):
    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None


class _Modalities(Struct):
    input: list[str] = []
    output: list[str] = []


class _Dev(Struct):
    """A model of models.dev. Costs are dollars per million tokens."""

    limit: _Limit = msgspec.field(default_factory=_Limit)
    cost: _Cost = msgspec.field(default_factory=_Cost)
    modalities: _Modalities = msgspec.field(default_factory=_Modalities)
    reasoning: bool | None = None


class _DevProvider(Struct):
    models: dict[str, Raw] | None = None


class _Lite(Struct):
    """A model of LiteLLM. Costs are dollars per token; limits are sometimes numbers as text."""

    litellm_provider: str = ""
    mode: str = ""
    max_input_tokens: int | None = None
    max_output_tokens: int | None = None
    input_cost_per_token: float | None = None
    output_cost_per_token: float | None = None
    cache_read_input_token_cost: float | None = None
    cache_creation_input_token_cost: float | None = None
    supports_vision: bool | None = None
    supports_audio_input: bool | None = None
    supports_pdf_input: bool | None = None
    supports_reasoning: bool | None = None


async def load(where: str) -> bytes:
    """The bytes at `where`, an http(s) address or a path. Raises `InputError` where they cannot be had."""
    if where.startswith(("http://", "https://")):
        return await _fetch(where)
    if "://" in where:
        raise InputError(f"{where}: only http and https addresses can be read.")
    path = Path(where).expanduser()
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    return _sized(data, where)


async def _fetch(url: str) -> bytes:
    import aiohttp

    parts: list[bytes] = []
    try:
        async with (
            asyncio.timeout(SECONDS),
            aiohttp.ClientSession(trust_env=True) as session,
            session.get(url, max_redirects=5) as response,
        ):
            if response.status != 200:
                raise InputError(f"{url} answered {response.status} {response.reason or ''}".rstrip() + ".")
            size = 0
            async for part in response.content.iter_chunked(1 << 16):
                parts.append(part)
                if (size := size + len(part)) > MOST_BYTES:
                    break
    except TimeoutError:
        raise InputError(f"{url} did not answer within {SECONDS:g} s.") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise InputError(f"{url} cannot be read: {error}") from None
    return _sized(b"".join(parts), url)


def _sized(data: bytes, where: str) -> bytes:
    if len(data) > MOST_BYTES:
        raise InputError(f"{where} is larger than {MOST_BYTES >> 20} MB.")
    return data


def read(data: bytes, *, source: str, today: str, further: Mapping[str, str] | None = None) -> Book:
    """The catalog in `data`. `today` (YYYY-MM-DD) dates one that has no date itself.

    `further` are names of providers beside those of the table, each with the name to store it under. Raises
    `InputError` that says what is wrong with it.
    """
    try:
        whole = msgspec.json.decode(data, type=dict[str, Raw])
    except msgspec.DecodeError as error:
        raise InputError(f"{source} is no catalog: {error}.", hint=f"Take {FORMS}.") from None
    if {"date", "models"} <= whole.keys():
        try:
            book = msgspec.json.decode(data, type=Book)
        except msgspec.DecodeError as error:
            raise InputError(f"{source}: {error}.") from None
    else:
        names = {**_names(), **(further or {})}
        book = Book(date=today, source=source, models=_dev(whole, names) or _lite(whole, names))
    if not any(book.models.values()):
        raise InputError(f"{source} tells of no model of a provider that Limpet knows.", hint=f"Take {FORMS}.")
    return book


def _names() -> dict[str, str]:
    """Our name of a provider by each name that it has anywhere."""
    return {also: name for name, service in services().items() for also in (name, *service.also)}


def _dev(whole: Mapping[str, Raw], names: Mapping[str, str]) -> dict[str, dict[str, Facts]]:
    found: dict[str, dict[str, Facts]] = {}
    for foreign, raw in whole.items():
        provider = _as(raw, _DevProvider)
        if provider is None or provider.models is None or foreign not in names:
            continue
        models = {name: _dev_facts(model) for name, one in provider.models.items() if (model := _as(one, _Dev))}
        found.setdefault(names[foreign], {}).update(_told(models))
    return found


def _dev_facts(model: _Dev) -> Facts:
    cost = model.cost
    return Facts(
        window=max(0, model.limit.context or 0),
        max_output=max(0, model.limit.output or 0),
        input=_known(model.modalities.input),
        output=_known(model.modalities.output),
        thinking=model.reasoning,
        price=_price(cost.input, cost.output, cache_read=cost.cache_read, cache_write=cost.cache_write),
    )


def _lite(whole: Mapping[str, Raw], names: Mapping[str, str]) -> dict[str, dict[str, Facts]]:
    found: dict[str, dict[str, Facts]] = {}
    for reference, raw in whole.items():
        model = _as(raw, _Lite)
        if model is None or model.mode not in ("chat", "responses") or model.litellm_provider not in names:
            continue
        name = reference.removeprefix(f"{model.litellm_provider}/")
        if facts := _told({name: _lite_facts(model)}):
            found.setdefault(names[model.litellm_provider], {}).update(facts)
    return found


def _lite_facts(model: _Lite) -> Facts:
    takes = {"image": model.supports_vision, "audio": model.supports_audio_input, "pdf": model.supports_pdf_input}
    words = ["text", *(name for name, yes in takes.items() if yes)]
    read, write = model.cache_read_input_token_cost, model.cache_creation_input_token_cost
    return Facts(
        window=max(0, model.max_input_tokens or 0),
        max_output=max(0, model.max_output_tokens or 0),
        input=_known(words) if model.supports_vision is not None else (),
        thinking=model.supports_reasoning,
        price=_price(
            _per_million(model.input_cost_per_token),
            _per_million(model.output_cost_per_token),
            cache_read=_per_million(read),
            cache_write=_per_million(write),
        ),
    )


def _as(raw: Raw, kind: type[T]) -> T | None:
    """`raw` as `kind`, None when it is something else: catalogs hold samples and oddities."""
    try:
        return msgspec.json.decode(raw, type=kind, strict=False)
    except msgspec.DecodeError:
        return None


def _told(models: Mapping[str, Facts]) -> dict[str, Facts]:
    """Without those of which nothing is said."""
    return {name: facts for name, facts in models.items() if facts != Facts()}


def _known(words: list[str]) -> tuple[Modality, ...]:
    return msgspec.convert([word for word in words if word in _MODALITIES], tuple[Modality, ...])


def _per_million(cost: float | None) -> float | None:
    return None if cost is None else round(cost * _MILLION, 6)


def _price(
    input: float | None, output: float | None, *, cache_read: float | None, cache_write: float | None
) -> Dollars | None:
    if input is None or output is None or min(input, output, cache_read or 0, cache_write or 0) < 0:
        return None
    return Dollars(input, output, cache_read=cache_read or 0.0, cache_write=cache_write or 0.0)


class Change(Struct, frozen=True):
    """One difference: `sign` is `+` added, `~` changed or `-` removed."""

    sign: str
    reference: str
    facts: Facts


def changes(old: Book, new: Book, *, removed: bool = True) -> list[Change]:
    """What `new` says otherwise than `old`. `removed`: also what it no longer says."""
    before = {f"{provider}/{name}": facts for provider, models in old.models.items() for name, facts in models.items()}
    after = {f"{provider}/{name}": facts for provider, models in new.models.items() for name, facts in models.items()}
    found = [
        Change("+" if reference not in before else "~", reference, facts)
        for reference, facts in after.items()
        if before.get(reference) != facts
    ]
    gone = [Change("-", reference, facts) for reference, facts in before.items() if reference not in after]
    return found + (gone if removed else [])
