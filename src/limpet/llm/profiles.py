"""Profiles out of `profiles.json`: what is known of services and models, merged for one model at one service."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from msgspec import Raw, Struct

from limpet.llm.http import is_loopback
from limpet.types.profile import Profile

_FILE = Path(__file__).with_name("profiles.json")
_LOCAL_CALLS = ("json", "hermes", "mistral")


class Service(Struct, frozen=True):
    """A provider. `key_env` and `url_env` name its usual variables; `own` are patterns of the models only it has;
    `ports` are where it listens on one's own machine; `keyless`: it may be used without a key."""

    name: str
    base_url: str = ""
    hosts: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    key_env: str = ""
    url_env: str = ""
    default: str = ""
    own: tuple[str, ...] = ()
    keyless: bool = False
    set: dict[str, Raw] = {}


class _Rule(Struct, frozen=True):
    match: str
    set: dict[str, Raw]


class _Data(Struct, frozen=True):
    providers: dict[str, Service]
    models: tuple[_Rule, ...]


@cache
def _data() -> _Data:
    return msgspec.json.decode(_FILE.read_bytes(), type=_Data)


def services() -> dict[str, Service]:
    """All known providers by their short name."""
    return _data().providers


def service_at(base_url: str) -> str:
    """The provider whose host (or port, on this machine) `base_url` names; `custom` for any other."""
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    for name, service in services().items():
        if any(host == known or host.endswith(f".{known}") for known in service.hosts):
            return name
        if is_loopback(base_url) and parts.port in service.ports:
            return name
    return "custom"


def owner_of(model: str) -> str:
    """The provider that a bare model name belongs to, empty when it may be anybody's."""
    for name, service in services().items():
        if any(fnmatchcase(model.lower(), pattern) for pattern in service.own):
            return name
    return ""


def profile_of(provider: str, model: str, *, base_url: str = "", window: int = 0) -> Profile:
    """The profile of `model` at `provider` (an unknown provider is a Chat Completions service at `base_url`).

    Data of the provider come first, then of every pattern that matches the model, with or without its vendor's
    prefix. `window`, where given, can only make the known one smaller.
    """
    service = services().get(provider, services()["custom"])
    fields = {"wire": Raw(b'"openai_chat"'), **service.set}
    full = model.lower()
    bare = full.rpartition("/")[2]
    keep = {name: service.set[name] for name in ("wire", "thinking", "cache_ttl") if name in service.set}
    foreign = not any(fnmatchcase(bare, pattern) for pattern in service.own)
    for rule in _data().models:
        if fnmatchcase(bare, rule.match) or fnmatchcase(full, rule.match):
            fields.update(rule.set)
    if foreign:
        fields.update(keep)
        fields.pop("effort_with_tools", None)
        if not service.hosts:
            fields.pop("price", None)
    address = base_url or service.base_url
    if base_url and service_at(base_url) != provider:
        fields.pop("cache_key", None)
    profile = msgspec.json.decode(
        msgspec.json.encode({**fields, "provider": provider, "model": model, "base_url": address}), type=Profile
    )
    if is_loopback(address) and not profile.local:
        profile = msgspec.structs.replace(profile, local=True, text_calls=profile.text_calls or _LOCAL_CALLS)
    return with_window(profile, window)


def with_window(profile: Profile, *windows: int) -> Profile:
    """`profile` with the smallest window of those known (0 = not known)."""
    known = [window for window in (profile.window, *windows) if window > 0]
    return msgspec.structs.replace(profile, window=min(known)) if known else profile
