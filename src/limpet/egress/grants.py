"""Secrets at the boundary: a command holds a stand-in, the request to the granted host gets the value."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterable, Sequence
from urllib.parse import quote

from msgspec import Struct

from limpet.config.secrets import SHORTEST, SecretRedactor
from limpet.egress.hosts import Host
from limpet.errors import ConfigError

Headers = list[tuple[str, str]]


class Grant(Struct, frozen=True):
    """`value` goes to `hosts` only. `stand_in` is what commands find in the environment variable `variable`."""

    variable: str
    value: str
    hosts: tuple[Host, ...]
    stand_in: str

    def admits(self, host: str, port: int) -> bool:
        """A host named without a port gets it only where it is encrypted."""
        return any(one.admits(host, port) and (one.port or port == 443) for one in self.hosts)


def grant(variable: str, value: str, hosts: tuple[Host, ...]) -> Grant:
    """A grant with a stand-in of its own, new in each process. Raises `ConfigError` for a value that cannot be one."""
    where = f"egress.secrets.{variable}"
    if not (variable.isidentifier() and variable.isascii()):
        raise ConfigError(f"{where}: {variable!r} is no name for an environment variable.")
    if len(value) < SHORTEST:
        raise ConfigError(f"{where}: values under {SHORTEST} characters cannot be kept out of answers.")
    if not (value.isascii() and value.isprintable()):
        raise ConfigError(f"{where}: in requests only printable ASCII can be sent, and the value holds more.")
    return Grant(variable, value, hosts, f"limpet_{os.urandom(16).hex()}")


class Purse:
    """The grants that count for one host."""

    def __init__(self, grants: Iterable[Grant]) -> None:
        self._grants: Sequence[Grant] = tuple(grants)
        self.redactor = SecretRedactor({one.variable: one.value for one in self._grants})

    def __bool__(self) -> bool:
        return bool(self._grants)

    def target(self, target: str) -> str:
        """The path with the values in its query."""
        path, mark, query = target.partition("?")
        for one in self._grants:
            query = query.replace(one.stand_in, quote(one.value, safe=""))
        return path + mark + query

    def headers(self, headers: Headers) -> Headers:
        """With the values in place of the stand-ins, also inside `Basic` credentials."""
        return [(name, self._filled(value)) for name, value in headers]

    def _filled(self, value: str) -> str:
        scheme, _, rest = value.partition(" ")
        if scheme.lower() == "basic":
            try:
                plain = base64.b64decode(rest.strip(), validate=True)
            except binascii.Error:
                return value
            filled = self._replaced(plain.decode("latin-1"))
            return f"{scheme} {base64.b64encode(filled.encode('latin-1')).decode()}"
        return self._replaced(value)

    def _replaced(self, text: str) -> str:
        for one in self._grants:
            text = text.replace(one.stand_in, one.value)
        return text
