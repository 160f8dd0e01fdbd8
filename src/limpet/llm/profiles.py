"""Profiles out of `profiles.json`: what is particular of services and models, merged for one model at one service."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from msgspec import Raw, Struct, structs

from limpet.llm.catalog import Catalog, Facts
from limpet.llm.http import is_loopback
from limpet.types.profile import Profile, Wire

_FILE = Path(__file__).with_name("profiles.json")
_LOCAL_CALLS = ("json", "hermes", "mistral")
_FIRM = ("wire", "thinking", "efforts", "cache_ttl", "reasoning_echo", "reasoning_field", "token_parameter", "schema")
"""What a service says of itself holds for models of others too, whatever they are like at home."""
HOSTED_WINDOW = 128_000
SERVER_WINDOW = 32_768
"""Tokens assumed of a model that nothing is known of: at a service of the table, and at a server of one's own."""


class Service(Struct, frozen=True, forbid_unknown_fields=True):
    """A provider. `key_env` and `url_env` name its usual variables; `own` are patterns of the models only it has;
    `ports` are where it listens on one's own machine; `keyless`: it may be used without a key.

    `auto`: its key in the environment is reason enough to use it. `resells`: it sells models at their owner's price.
    `also` are names that it has in other catalogs.
    """

    name: str
    base_url: str = ""
    hosts: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    key_env: str = ""
    url_env: str = ""
    default: str = ""
    own: tuple[str, ...] = ()
    keyless: bool = False
    auto: bool = True
    resells: bool = False
    also: tuple[str, ...] = ()
    set: dict[str, Raw] = {}


class _Rule(Struct, frozen=True, forbid_unknown_fields=True):
    """What holds of the models that match; with `at`, only at these providers and their own addresses."""

    match: str
    set: dict[str, Raw]
    at: tuple[str, ...] = ()


class Data(Struct, frozen=True, forbid_unknown_fields=True):
    """All that `profiles.json` holds. The order of the providers is the one in which they are chosen."""

    providers: dict[str, Service]
    models: tuple[_Rule, ...]


@cache
def data() -> Data:
    """The data, read once."""
    return msgspec.json.decode(_FILE.read_bytes(), type=Data)


def services() -> dict[str, Service]:
    """All known providers by their short name."""
    return data().providers


def service_at(base_url: str) -> str:
    """The provider whose host (or port, on this machine) `base_url` names; `custom` for any other.

    Of several at one host it is the one whose own address `base_url` continues.
    """
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    found: list[tuple[int, str]] = []
    for name, service in services().items():
        if any(host == known or host.endswith(f".{known}") for known in service.hosts):
            path = urlsplit(service.base_url).path.rstrip("/")
            found.append((len(path) if path and parts.path.startswith(path) else 0, name))
        elif service.ports and parts.port in service.ports and is_loopback(base_url):
            return name
    return max(found, key=lambda pair: pair[0])[1] if found else "custom"


def owner_of(model: str) -> str:
    """The provider that a bare model name belongs to, empty when it may be anybody's."""
    for name, service in services().items():
        if any(_matches(model.lower(), pattern) for pattern in service.own):
            return name
    return ""


def _matches(name: str, pattern: str) -> bool:
    """`fnmatchcase`, at a hundredth of its cost for the many patterns that begin otherwise."""
    head = pattern.split("*", 1)[0].split("[", 1)[0].split("?", 1)[0]
    return name.startswith(head) and (name == pattern or fnmatchcase(name, pattern))


def profile_of(
    provider: str,
    model: str,
    *,
    base_url: str = "",
    window: int = 0,
    wire: Wire | None = None,
    catalog: Catalog = Catalog(),  # noqa: B008 (frozen)
) -> Profile:
    """The profile of `model` at `provider`. A provider that is not in the table is a Chat Completions service at
    `base_url`: of the kind that its host names, where one does.

    Data of the provider come first, then of every pattern that matches the model, with or without its vendor's
    prefix; then the facts of `catalog`. `window`, where given, can only make the known one smaller. `wire` is one to
    use instead of the usual.
    """
    kind, wire = _kind(provider, base_url, wire=wire)
    address = base_url or services()[kind].base_url
    elsewhere = bool(base_url) and service_at(base_url) != kind
    fields = _fields(kind, model, elsewhere=elsewhere, wire=wire)
    profile = msgspec.json.decode(
        msgspec.json.encode({**fields, "provider": provider, "model": model, "base_url": address}), type=Profile
    )
    if is_loopback(address) and not profile.local:
        profile = structs.replace(profile, local=True, text_calls=profile.text_calls or _LOCAL_CALLS)
    facts = facts_of(kind, model, catalog)
    if kind != provider and (own := catalog.facts(provider, model)) is not None:
        facts = own.over(facts) if facts is not None else own
    return with_window(with_facts(profile, facts) if facts is not None else profile, window)


def _kind(provider: str, base_url: str, *, wire: Wire | None) -> tuple[str, Wire | None]:
    """The row of the table that tells of `provider`, and the wire to use where it is not that row's."""
    if provider in services() and provider != "custom":
        return provider, wire
    kind = service_at(base_url)
    if "wire" in services()[kind].set and wire is None:
        return "custom", None  # its row tells of another wire than the one that such an address is meant for
    return kind, wire or "openai_chat"


def _fields(provider: str, model: str, *, elsewhere: bool, wire: Wire | None) -> dict[str, object]:
    """What provider and patterns say. `elsewhere`: under an address that is not the provider's own."""
    service = services()[provider]
    full = model.lower()
    bare = full.rpartition("/")[2]
    fields: dict[str, object] = {"wire": "openai_chat", **service.set}
    rules = [rule for rule in data().models if _matches(bare, rule.match) or _matches(full, rule.match)]
    for rule in rules:
        if not rule.at:
            fields.update(rule.set)
    if not any(_matches(bare, pattern) for pattern in service.own):
        firm = {name: service.set[name] for name in _FIRM if name in service.set}
        if "thinking" in firm:
            fields.pop("efforts", None)
        fields.pop("effort_with_tools", None)
        fields.update(firm)
    for rule in rules:
        if provider in rule.at and not elsewhere and (wire is None or rule.set.get("wire") in (None, _json(wire))):
            fields.update(rule.set)
    if elsewhere:
        fields.pop("cache_key", None)
    if wire is not None:
        fields["wire"] = wire
    return fields


def _json(text: str) -> Raw:
    return Raw(msgspec.json.encode(text))


def facts_of(provider: str, model: str, catalog: Catalog) -> Facts | None:
    """What `catalog` knows of `model` at `provider`; else what it knows of it at its owner's.

    The price there is only taken where the provider sells at it.
    """
    own = catalog.facts(provider, model)
    bare = model.lower().rpartition("/")[2]
    while bare and not (owner := owner_of(bare)):
        bare = bare.partition(".")[2]  # as in eu.anthropic.claude-sonnet-5
    if not bare or (owner := owner_of(bare)) == provider:
        return own
    there = catalog.facts(owner, bare) or (catalog.facts(owner, model) if bare != model else None)
    if there is None:
        return own
    service = services().get(provider)
    if service is None or not service.resells:
        there = structs.replace(there, price=None)
    return own.over(there) if own is not None else there


def with_facts(profile: Profile, facts: Facts) -> Profile:
    """`profile` with what `facts` say. A server of one's own has no price unless one is set for it."""
    return structs.replace(
        profile,
        window=facts.window or profile.window,
        max_output=facts.max_output or profile.max_output,
        images="image" in facts.input if facts.input else profile.images,
        price=facts.price.price if facts.price is not None else profile.price,
    )


def with_window(profile: Profile, *windows: int) -> Profile:
    """`profile` with the smallest window of those known (0 = not known)."""
    known = [window for window in (profile.window, *windows) if window > 0]
    return structs.replace(profile, window=min(known)) if known else profile


def assumed(profile: Profile) -> tuple[Profile, str]:
    """`profile` with a window where none is known, and a sentence that says so."""
    if profile.window:
        return profile, ""
    hosted = bool(services().get(profile.provider, services()["custom"]).hosts)
    window = HOSTED_WINDOW if hosted else SERVER_WINDOW
    told = (
        f"The window of {profile.reference} is not known: {window:,} tokens are assumed. "
        f'Set it: `limpet config set models.catalog."{profile.reference}".window TOKENS`.'
    )
    return structs.replace(profile, window=window), told
