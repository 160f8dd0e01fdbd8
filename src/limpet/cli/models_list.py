"""What `limpet models list` shows: providers, what they offer, and what the catalogs know of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from limpet.errors import InputError, UnreachableError
from limpet.llm.catalog import SHIPPED, Book, Facts, read_book
from limpet.llm.choose import ModelSettings, ProviderSettings
from limpet.llm.local import models_at
from limpet.llm.profiles import facts_of, services

MOST = 40
"""Models of one provider that are listed without asking for that provider."""


def about(name: str, settings: ModelSettings, environ: Mapping[str, str]) -> str:
    """Whether a provider can be used, in a few words."""
    service = services()[name]
    if _configured(name, settings):
        state = "configured"
    elif service.key_env and environ.get(service.key_env):
        state = f"{service.key_env} is set"
    elif service.keyless:
        state = "needs no key"
    else:
        state = f"needs {service.key_env}"
    return f"{service.name}; {state}" + (f"; usually {service.default}" if service.default else "")


def at_hand(settings: ModelSettings, environ: Mapping[str, str]) -> list[str]:
    """The providers that are configured, or whose key the environment has."""
    table = services()
    keyed = [name for name, service in table.items() if service.auto and environ.get(service.key_env or "-")]
    return [*(name for name in settings.providers if _configured(name, settings)), *keyed]


def _configured(name: str, settings: ModelSettings) -> bool:
    own = settings.providers.get(name, ProviderSettings())
    return bool(own.api_key or own.base_url)


def known(settings: ModelSettings, providers: Iterable[str]) -> list[tuple[str, str]]:
    """The models of `providers` that the catalogs know: reference, and what is known."""
    books = [book for path in (str(SHIPPED), settings.catalog.fetched) if (book := _book(path)) is not None]
    own = [reference.partition("/") for reference in settings.catalog.own]
    rows: list[tuple[str, str]] = []
    for provider in dict.fromkeys(providers):
        names = [name for book in reversed(books) for name in book.models.get(provider, ())]
        names = list(dict.fromkeys(names + [name for owner, _, name in own if owner == provider]))
        for name in names[:MOST]:
            rows.append((f"{provider}/{name}", told(facts_of(provider, name, settings.catalog))))
        if len(names) > MOST:
            rows.append(("…", f"{len(names) - MOST} more of {provider}: `limpet models list {provider}`"))
    return rows


def _book(path: str) -> Book | None:
    try:
        return read_book(path) if path else None
    except msgspec.DecodeError:
        return None  # said when it is looked up


def told(facts: Facts | None) -> str:
    """What is known of a model, in one line: window, dollars per million tokens in and out, what it takes but text."""
    if facts is None:
        return "nothing is known"
    parts: list[str] = []
    if facts.window:
        parts.append(f"{facts.window:,} tokens")
    if facts.price is not None:
        parts.append(f"${facts.price.input:g}/${facts.price.output:g}")
    if more := [word for word in facts.input if word != "text"]:
        parts.append(", ".join(more))
    if facts.thinking:
        parts.append("reasons")
    return "; ".join(parts) or "nothing is known"


async def offers(provider: str, settings: ModelSettings, environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """The models that a provider offers, with what is known of them. Raises `UserError`, `ModelError`."""
    service = services().get(provider)
    own = settings.providers.get(provider, ProviderSettings())
    base_url = (
        own.base_url or (environ.get(service.url_env, "") if service else "") or (service.base_url if service else "")
    )
    key = own.api_key or (environ.get(service.key_env, "") if service else "")
    if not base_url:
        raise InputError(f"{provider} is no provider Limpet knows.", hint=f"There are: {', '.join(services())}.")
    try:
        names = await models_at(base_url, key=key)
    except OSError as error:
        raise UnreachableError(f"cannot reach {base_url}: {error}", provider=provider) from error
    if not names:
        raise UnreachableError(f"{base_url} lists no models", provider=provider, hint="Check the key and the address.")
    return [(f"{provider}/{name}", told(facts_of(provider, name, settings.catalog))) for name in names]
