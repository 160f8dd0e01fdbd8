"""What the configuration says of the proxy, in the words of this unit: secrets resolved, hosts checked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from msgspec import structs

from limpet.config.paths import Home
from limpet.config.schema import EgressSecret, EgressSettings
from limpet.config.secrets import resolve
from limpet.egress.grants import Grant, grant
from limpet.egress.hosts import parse_all
from limpet.egress.proxy import Egress
from limpet.errors import ConfigError
from limpet.net.guard import Guard


class Wanted(Protocol):
    """What was granted to a skill."""

    @property
    def hosts(self) -> tuple[str, ...]: ...
    @property
    def secrets(self) -> tuple[str, ...]: ...


def egress_of(settings: EgressSettings, home: Home, environ: Mapping[str, str], *, guard: Guard) -> Egress:
    """The proxy of one process, to be entered. Raises `ConfigError` that names the setting."""
    grants: list[Grant] = []
    for variable, one in settings.secrets.items():
        where = f"egress.secrets.{variable}"
        if not one.hosts:
            raise ConfigError(
                f"{where}.hosts is empty, so nobody gets the secret.", hint="Name its hosts, or remove it."
            )
        value = resolve(one.secret, key=f"{where}.secret", root=home.root, environ=environ)
        grants.append(grant(variable, value, parse_all(one.hosts, setting=f"{where}.hosts")))
    hosts = parse_all(settings.hosts, setting="egress.hosts")
    return Egress(hosts, tuple(grants), guard=guard, folder=home.run)


def with_granted(
    settings: EgressSettings, granted: Iterable[tuple[str, Wanted]], *, kept: Collection[str]
) -> EgressSettings:
    """`settings` with what the owner granted to skills: their hosts, and for these the secrets that are `kept`.

    A secret that the settings name stays as they say.
    """
    hosts, secrets = list(settings.hosts), dict(settings.secrets)
    for _, one in granted:
        hosts += one.hosts
        for name in one.secrets:
            if name in kept and one.hosts and name not in settings.secrets:
                known = secrets[name].hosts if name in secrets else ()
                secrets[name] = EgressSecret(secret=f"secret:{name}", hosts=tuple(dict.fromkeys((*known, *one.hosts))))
    return structs.replace(settings, hosts=tuple(dict.fromkeys(hosts)), secrets=secrets)
