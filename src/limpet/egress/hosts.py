"""The hosts that commands may reach: names, `*.domain`, addresses, each with a port or without."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address

from msgspec import Struct

from limpet.errors import ConfigError

WEB = (80, 443)
"""The ports of a host that is named without one."""
_NAME = re.compile(r"(?:\*\.)?[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?")


class Host(Struct, frozen=True):
    """`name` in lower case; `port` 0 = those of the web."""

    name: str
    port: int = 0

    def admits(self, host: str, port: int) -> bool:
        if self.port != port and (self.port or port not in WEB):
            return False
        if self.name.startswith("*."):
            return host.endswith(self.name[1:])
        return host == self.name


def normal(host: str) -> str:
    """A name as rules are written: lower case, no dot at its end, an IPv6 address without brackets and short."""
    name = host.strip("[]").rstrip(".").lower()
    try:
        return str(ip_address(name))
    except ValueError:
        return name


def parse(text: str, *, setting: str) -> Host:
    """The rule that `text` is. Raises `ConfigError` that names the setting."""
    name, port = split(text.strip(), default=0)
    if not (_NAME.fullmatch(name) or ":" in name) or not 0 <= port <= 65_535:
        raise ConfigError(
            f"{setting}: {text!r} is no host.",
            hint='Write "name", "*.domain" or "name:port"; for everything set tools.exec.network to "open".',
        )
    return Host(name, port)


def parse_all(texts: Iterable[str], *, setting: str) -> tuple[Host, ...]:
    """Each of `texts` as a rule. Raises `ConfigError`."""
    return tuple(parse(text, setting=setting) for text in texts)


def split(text: str, *, default: int) -> tuple[str, int]:
    """Name (as rules are written) and port of `name`, `name:port` or `[address]:port`; port -1 when it is none."""
    name, colon, port = text.rpartition(":")
    if not colon or (":" in name and not name.startswith("[")) or text.endswith("]"):
        return normal(text), default
    return normal(name), int(port) if port.isascii() and port.isdigit() else -1
