"""Addresses that tools must not reach, in every spelling."""

from __future__ import annotations

import pytest

from limpet.errors import ConfigError, NetworkRefusedError
from limpet.net.guard import Guard, NetworkRules

PRIVATE = [
    "127.0.0.1",
    "127.8.9.1",
    "::1",
    "::ffff:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::7f00:1",
    "2001:db8::5efe:127.0.0.1",
    "2606:4700::5efe:10.0.0.1",
    "::127.0.0.1",
    "2002:7f00:1::",
    "169.254.169.254",
    "fe80::1",
    "fe80::1%eth0",
    "fd00:ec2::254",
    "100.64.0.1",
    "198.18.0.1",
    "0.0.0.0",
    "::",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "192.0.2.1",
    "224.0.0.1",
    "ff02::1",
    "255.255.255.255",
]
PUBLIC = ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "64:ff9b::101:101", "2002:101:101::"]


@pytest.mark.parametrize("address", PRIVATE)
def test_what_is_not_public_is_refused(address: str) -> None:
    with pytest.raises(NetworkRefusedError, match="Only public addresses"):
        Guard().check_address(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_what_is_public_is_reached(address: str) -> None:
    Guard().check_address(address)


def test_a_network_that_the_owner_allows_is_reached_and_no_other() -> None:
    guard = Guard(NetworkRules(allow_cidrs=("198.18.0.0/15",)))
    guard.check_address("198.18.0.1")
    for other in set(PRIVATE) - {"198.18.0.1"}:
        with pytest.raises(NetworkRefusedError):
            guard.check_address(other)


def test_names_can_be_denied_and_allowed() -> None:
    guard = Guard(NetworkRules(deny_hosts=("*.evil.example",)))
    guard.check_host("good.example")
    with pytest.raises(NetworkRefusedError, match="deny_hosts"):
        guard.check_host("A.EVIL.example.")
    only = Guard(NetworkRules(allow_hosts=("*.wikipedia.org",)))
    only.check_host("de.wikipedia.org")
    with pytest.raises(NetworkRefusedError, match="allow_hosts"):
        only.check_host("wikipedia.org.evil.example")


def test_a_network_that_is_none_is_said() -> None:
    with pytest.raises(ConfigError, match="allow_cidrs"):
        Guard(NetworkRules(allow_cidrs=("10.0.0.0/99",)))
