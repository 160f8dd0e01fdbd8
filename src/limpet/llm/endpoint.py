"""What is said of an endpoint, checked before anything is sent there: addresses and header values that cannot work."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from limpet.errors import ConfigError


def check_address(provider: str, url: str) -> None:
    """Raises `ConfigError` for an address that no request can go to."""
    if not url:
        return
    what = f"the address (base_url) of {provider} "
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"{what}is no web address: {error}") from None
    if parts.scheme.lower() not in ("http", "https") or not host:
        raise ConfigError(f"{what}must begin with http:// or https:// and name a host")
    if "@" in parts.netloc:
        raise ConfigError(
            f"{what}holds a user name or password",
            hint=f"Give the key as providers.{provider}.api_key, other credentials as providers.{provider}.headers.",
        )
    if parts.query or parts.fragment:
        raise ConfigError(f"{what}has something after a ? or #", hint="It ends with the path, such as …/v1.")


def check_values(provider: str, values: Iterable[str]) -> None:
    """Raises `ConfigError` for a key or header that cannot stand in a request; it is never shown."""
    for value in values:
        if any(ord(sign) < 32 or ord(sign) == 127 for sign in value):
            raise ConfigError(
                f"a key or header of {provider} holds a line break or another control character",
                hint="Copy it again, in one line.",
            )
