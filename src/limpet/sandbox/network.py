"""How much of the network a sandboxed command sees."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

FOLDER = "/run/limpet"
"""Where what belongs to the sandbox itself is seen inside."""
DOOR = f"{FOLDER}/door.sock"
PORT = 3128
"""Where the forwarder listens inside, in a network namespace of its own."""


class Network(Struct, frozen=True):
    """`none`: only its own loopback. `door`: that, and a forwarder on it to the Unix socket `door` of the agent.
    `open`: the machine's.

    `env` is added to the environment of the command; `shown` are files (outside, name inside `FOLDER`) it may read.
    """

    kind: Literal["none", "door", "open"] = "none"
    door: str = ""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    shown: tuple[tuple[str, str], ...] = ()


NO_NETWORK = Network()


def arguments(network: Network) -> list[str]:
    """What bubblewrap is told beside `--unshare-all`."""
    if network.kind == "open":
        resolver = os.path.realpath("/etc/resolv.conf")  # often a link to where nothing else is shown
        outside = [] if resolver.startswith("/etc/") else ["--ro-bind-try", resolver, resolver]
        return ["--share-net", *outside]
    if network.kind == "none":
        return []
    forwarder = os.path.join(os.path.dirname(__file__), "door.py")
    argv = ["--ro-bind", forwarder, f"{FOLDER}/door.py", "--ro-bind", network.door, DOOR]
    for outside, name in network.shown:
        argv += ["--ro-bind", outside, f"{FOLDER}/{name}"]
    return argv


def init_arguments(network: Network) -> list[str]:
    """What the init is told after the command."""
    return [str(PORT), DOOR] if network.kind == "door" else []
