"""Which addresses a tool may reach. Decided on resolved addresses, whatever a name or a spelling said before.

A page, a mail or a model that has been talked into it may name the router, the cloud's metadata service or a server on
this machine. So only addresses of the public internet are reachable, unless the owner allows more.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from msgspec import Struct

from limpet.errors import ConfigError, NetworkRefusedError

Address = IPv4Address | IPv6Address

_NAT64 = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))
_ISATAP = 0x5EFE
_COMPATIBLE = IPv6Network("::/96")


class NetworkRules(Struct, frozen=True):
    """`allow_cidrs` are networks that may be reached although they are not public. `deny_hosts` are patterns of names
    that may not be reached; where `allow_hosts` has any, only those may."""

    allow_cidrs: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    deny_hosts: tuple[str, ...] = ()


class Guard:
    """Raises `NetworkRefusedError` for what must not be reached. Raises `ConfigError` for networks that are none."""

    def __init__(self, rules: NetworkRules = NetworkRules()) -> None:  # noqa: B008 (frozen)
        self._rules = rules
        self._networks = [_network(text) for text in rules.allow_cidrs]

    def check_host(self, host: str) -> None:
        """Refuse a name by the owner's lists; its addresses are looked at when they are known."""
        name = host.rstrip(".").lower()
        if any(fnmatchcase(name, pattern.lower()) for pattern in self._rules.deny_hosts):
            raise NetworkRefusedError(f"{host} is on the list of hosts that are not reached (net.deny_hosts).")
        allowed = self._rules.allow_hosts
        if allowed and not any(fnmatchcase(name, pattern.lower()) for pattern in allowed):
            raise NetworkRefusedError(f"{host} is not among the hosts that may be reached (net.allow_hosts).")

    def check_address(self, text: str, *, host: str = "") -> None:
        """Refuse an address that is not public, in any of the forms that hide one in another."""
        address = ip_address(text.partition("%")[0])
        if any(address.version == network.version and address in network for network in self._networks):
            return
        for one in _meanings(address):
            if what := _private(one):
                said = f"{host} is at {text}" if host and host != text else text
                hidden = f" (which means {one})" if one != address else ""
                raise NetworkRefusedError(
                    f"{said}{hidden}: {what}. Only public addresses are reached.",
                    hint="The owner can allow a network: net.allow_cidrs in the configuration.",
                )


def _meanings(address: Address) -> Iterator[Address]:
    """The address, and every IPv4 address that is written inside it."""
    yield address
    if isinstance(address, IPv4Address):
        return
    low = IPv4Address(int(address) & 0xFFFF_FFFF)
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if any(address in network for network in _NAT64) or (int(address) >> 32) & 0xFFFF == _ISATAP:
        yield low
    if address in _COMPATIBLE and int(address) > 1:
        yield low


def _private(address: Address) -> str:
    """Why an address is not public; empty when it is."""
    if address.is_loopback:
        return "this machine itself"
    if address.is_unspecified:
        return "no address of anybody's"
    if address.is_link_local:
        return "a link-local address, where clouds keep their metadata"
    if address.is_multicast:
        return "a group of machines"
    if isinstance(address, IPv6Address) and any(address in network for network in _NAT64):
        return ""  # decided by the address inside
    return "" if address.is_global else "a private or reserved address"


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text, strict=False)
    except ValueError as error:
        raise ConfigError(f"net.allow_cidrs: {error}", hint="Write networks as 10.0.0.0/8 or fd00::/8.") from None
