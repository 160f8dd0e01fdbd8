"""Addresses: the chats that a conversation can send to. Implements the port `Outbound`.

Only chats in which somebody has spoken to the agent: nobody is written to out of the blue.
"""

from __future__ import annotations

from collections.abc import Iterable

from limpet.errors import ToolError
from limpet.session.keys import UNASKED
from limpet.store import inbox, peers, sessions, turns
from limpet.store.driver import Store
from limpet.store.sql import Connection
from limpet.types.envelope import Address, Beside, Part

LONGEST = 40_000
"""Characters of one message."""
LISTED = 20
OWNER = "owner"
TERMINAL = "cli"
WEBHOOK, ACCOUNT = "webhook", "main"
"""The channel that posts answers of jobs to addresses of the configuration."""


class Addresses:
    """The chats that are known to `store`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def parts(self, text: str, to: str, *, session: str, call: str) -> tuple[Part, ...]:
        if len(text) > LONGEST:
            raise ToolError(f"A message has at most {LONGEST:,} characters; send the rest as a file.")
        found = self._store.read(
            lambda connection: (
                [named(connection, to, tells=_is_owners(connection, session))] if to else _asked(connection, session)
            )
        )
        return tuple(
            Part(address, text, f"message:{call}:{number}", "reply", Beside()) for number, address in enumerate(found)
        )


def named(connection: Connection, to: str, *, tells: bool = True, targets: Iterable[str] = ()) -> Address:
    """The chat that is called `to`; `webhook:NAME` is one of `targets`.

    Raises `ToolError` that lists those there are, where `tells` allows it.
    """
    if to.startswith(f"{WEBHOOK}:"):
        return _target(to.partition(":")[2], tuple(targets))
    known = _known(connection)
    found = [address for names, address in known if to.casefold() in (name.casefold() for name in names)]
    if not found:
        there = ", ".join(names[0] for names, _ in known[:LISTED]) or "none yet"
        raise ToolError(f"There is no chat {to!r} to send to.", hint=f"Those there are: {there}." if tells else "")
    if len(set(found)) > 1:
        several = ", ".join(names[0] for names, address in known if address in found)
        raise ToolError(f"{to!r} is several chats.", hint=f"Say which: {several}." if tells else "Name it by its id.")
    return found[0]


def _target(name: str, targets: tuple[str, ...]) -> Address:
    if name not in targets:
        there = ", ".join(targets) or "none yet"
        raise ToolError(f"There is no webhook {name!r} to post to.", hint=f"webhooks.targets has: {there}.")
    return Address(WEBHOOK, ACCOUNT, name)


def _known(connection: Connection) -> list[tuple[tuple[str, ...], Address]]:
    """What each chat can be called, the unmistakable name first."""
    found: dict[Address, tuple[str, ...]] = {}
    for number, peer in enumerate(peers.owners(connection)):
        address = Address(peer.channel, peer.account, peer.chat)
        if peer.chat:
            found[address] = (_name(address), *((OWNER,) if number == 0 else ()), peer.id, peer.name)
    for peer in peers.listed(connection):
        if peer.chat:
            address = Address(peer.channel, peer.account, peer.chat)
            found.setdefault(address, (_name(address), peer.id, peer.name))
    for row in inbox.groups(connection):
        found.setdefault(row.address, (_name(row.address), row.group))
    return [(tuple(filter(None, names)), address) for address, names in found.items()]


def _is_owners(connection: Connection, session: str) -> bool:
    """Whether nobody but the owner speaks in the running turn."""
    turn = turns.live(connection, session)
    rows = inbox.of_turn(connection, turn.id) if turn is not None else []
    return bool(rows) and all(row.inbound.trust == "owner" for row in rows)


def _asked(connection: Connection, session: str) -> list[Address]:
    """The chats that the running turn answers."""
    row = sessions.find(connection, session)
    turn = turns.live(connection, session)
    rows = inbox.of_turn(connection, turn.id) if turn is not None else []
    found = list(dict.fromkeys(one.inbound.answered_at for one in rows))
    if not found and row is not None and (newest := inbox.newest(connection, row.key)) is not None:
        found = [newest.inbound.answered_at]
    found = [one for one in found if one.channel not in UNASKED]
    if not found:
        raise ToolError("This conversation has no chat.", hint="Name one with `to`.")
    return found


def _name(address: Address) -> str:
    plain = f"{address.channel}:{address.chat}"
    return f"{plain}:{address.thread}" if address.thread else plain
