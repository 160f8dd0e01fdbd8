"""Checks of `limpet security audit` that look at who can talk to the agents, and from where."""

from __future__ import annotations

from collections.abc import Iterator

from limpet.cli.security import Check, Hole, Scene
from limpet.config.channels import accounts


def open_channels(scene: Scene) -> Iterator[Hole]:
    for (kind, name), one in accounts(scene.settings.channels).items():
        where = f"channels.{kind}.{name}"
        if one.enabled and one.direct == "open":
            yield Hole("critical", f"{where}: anybody may talk to the agent", f"limpet config unset {where}.direct")
        if one.enabled and "*" in one.groups and not one.mention:
            yield Hole(
                "warning",
                f"{where}: the agent answers everything in every group that it is added to",
                f"limpet config unset {where}.mention, or list the groups.",
            )


def wide_peers(scene: Scene) -> Iterator[Hole]:
    profile = scene.settings.policy.peers
    if profile in ("coding", "full"):
        yield Hole(
            "warning",
            f"policy.peers is {profile}: others than you have the agent read your workspace and run commands",
            "limpet config unset policy.peers",
        )


def public_server(scene: Scene) -> Iterator[Hole]:
    gateway = scene.settings.gateway
    if gateway.port and gateway.host not in ("127.0.0.1", "::1", "localhost"):
        yield Hole(
            "warning",
            f"the gateway's server listens on {gateway.host}, in the clear: its token can be read on the way",
            "Put a proxy with TLS before it, or set gateway.host back to 127.0.0.1.",
        )


CHECKS: tuple[Check, ...] = (open_channels, wide_peers, public_server)
