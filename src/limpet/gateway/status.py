"""How a gateway is, in a file that other processes read: `limpet status`, the doctor, health checks."""

from __future__ import annotations

import contextlib
import os

import msgspec
from msgspec import Struct

from limpet.gateway.supervisor import Health
from limpet.store.owner import Owner

FILE = "gateway.json"
"""Below the folder `run`."""


class Snapshot(Struct, frozen=True):
    """`owner` is the process, `at` when this was so (UTC ms), `faults` (kind, account, why) of channels that could not
    be opened, `running` the session keys that are being worked on."""

    owner: str
    at: int
    channels: tuple[Health, ...] = ()
    faults: tuple[tuple[str, str, str], ...] = ()
    running: tuple[str, ...] = ()


def write_snapshot(path: str, snapshot: Snapshot | None) -> None:
    """Replace the file as a whole; None: there is no gateway any more."""
    if snapshot is None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        return
    draft = f"{path}.new"
    with open(draft, "wb") as file:
        file.write(msgspec.json.encode(snapshot))
    os.replace(draft, path)


def read_snapshot(path: str) -> Snapshot | None:
    """What a gateway wrote last; None when there is none, or it cannot be read."""
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=Snapshot)
    except (OSError, msgspec.MsgspecError):
        return None


def living(run: str) -> Snapshot | None:
    """What the gateway that runs over the folder `run` wrote last; None when none does."""
    found = read_snapshot(os.path.join(run, FILE))
    if found is None:
        return None
    us = Owner(run)
    try:
        return found if us.alive(found.owner) else None
    finally:
        us.close()
