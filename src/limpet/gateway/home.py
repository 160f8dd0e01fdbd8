"""What Limpet says by itself: to its owner, wherever he was last, and to chats that wait for something."""

from __future__ import annotations

from limpet.assistant import asking
from limpet.gateway.ground import Ground
from limpet.session.keys import API, UNASKED
from limpet.store import approvals, inbox, outbox, peers, subagents
from limpet.store.peers import Peer
from limpet.store.sql import Connection
from limpet.types.approval import Approval
from limpet.types.envelope import Address, Beside, Choice, OutboxRow, Part
from limpet.types.ids import new_id

BEGINNING = 60
LISTED = 10
LOST = "{count} could not be delivered:"
ONE, SEVERAL = "A message of mine", "{count} messages of mine"
HOW = "`limpet outbox list` shows them, `limpet outbox retry` sends them after all."
TERMINAL = "cli"


class Notices:
    """Puts what Limpet says by itself into the outbox."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    async def tell_waiting(self, key: str, text: str) -> None:
        """Tell every chat whose message waits under `key`."""
        now = self._ground.clock.now()

        def work(connection: Connection) -> None:
            rows = inbox.queued(connection, key)
            people = [one.address for row in rows for one in subagents.origins(connection, row)]
            for address in dict.fromkeys(people):
                if address.channel != TERMINAL and address.channel not in UNASKED:
                    outbox.queue(connection, Part(address, text, new_id("p"), "notice"), session="", turn="", now=now)

        await self._ground.store.write(work)
        self._ground.nudges.wake()

    async def say(self, address: Address, text: str, *, key: str = "", reply_to: str = "") -> None:
        """Say something in a chat; with a `key` once for all times."""
        now = self._ground.clock.now()
        part = Part(address, text, key or new_id("p"), "notice", Beside(reply_to=reply_to))
        await self._ground.store.write(lambda connection: outbox.queue(connection, part, session="", turn="", now=now))
        self._ground.nudges.wake()

    async def tell_owner(self, text: str, *, key: str = "") -> bool:
        """Tell the owner where he spoke last; False when he has no chat here yet."""
        home = self._ground.store.read(peers.owner_home)
        if home is None:
            return False
        await self.say(home, text, key=key)
        return True

    async def ask(self, approval: Approval) -> None:
        """Ask for the owner's word once: in the chat that the turn answers when it is his, else where he was last."""
        wanted, now = approval.wanted, self._ground.clock.now()

        def work(connection: Connection) -> bool:
            rows = inbox.of_turn(connection, approval.turn)
            people = [one for row in rows for one in subagents.origins(connection, row)]
            own = [one.address for one in people if one.trust == "owner" and one.address.channel != API]
            home = None if own else _owner(connection)
            where = own[-1] if own else _chat(home)
            if where is None or where.channel == TERMINAL:
                return False
            if home is not None:
                approvals.entrust(connection, approval.id, owner=f"{home.channel}:{home.account}:{home.id}")
            text = f"**I need your word** for `{wanted.plan}`\n{wanted.reason}"
            if wanted.kind == "question":
                text = f"{wanted.plan}\n{wanted.reason}"
            text += f"\n{asking.how_to_decide(approval)}"
            beside = Beside(choices=_choices(approval))
            part = Part(where, text, f"approval:{approval.id}", "notice", beside)
            return outbox.queue(connection, part, session="", turn="", now=now)

        if await self._ground.store.write(work):
            self._ground.nudges.wake()

    async def report(self) -> bool:
        """Tell the owner, in one message, of everything that did not arrive; False when there was nothing, or nobody.

        A report that does not arrive itself is not reported: `limpet status` has it.
        """
        now = self._ground.clock.now()
        if not self._ground.store.read(outbox.untold):
            return False

        def work(connection: Connection) -> bool:
            rows = outbox.untold(connection)
            home = peers.owner_home(connection) if rows else None
            if home is None:
                return False
            part = Part(home, _report(rows), f"report:{rows[-1].id}:{now}", "report")
            outbox.mark_told(connection, [row.id for row in rows], knows=outbox.OWNER_KNOWS)
            return outbox.queue(connection, part, session="", turn="", now=now)

        told = await self._ground.store.write(work)
        if told:
            self._ground.nudges.wake()
        return told


def _owner(connection: Connection) -> Peer | None:
    return next((peer for peer in peers.owners(connection) if peer.chat), None)


def _chat(peer: Peer | None) -> Address | None:
    return None if peer is None else Address(channel=peer.channel, account=peer.account, chat=peer.chat)


def _choices(approval: Approval) -> tuple[Choice, ...]:
    if approval.wanted.kind == "question":
        given = tuple(Choice(one, f"/answer {approval.id} {one}") for one in approval.wanted.choices)
        return tuple(one for one in given if len(one.says.encode()) <= 64)
    return (
        Choice("Yes, this once", f"/approve {approval.id}"),
        Choice("Yes, always", f"/approve {approval.id} always"),
        Choice("No", f"/deny {approval.id}"),
    )


def _report(rows: list[OutboxRow]) -> str:
    count = ONE if len(rows) == 1 else SEVERAL.format(count=len(rows))
    lines = [
        f"- to {row.address.channel} {row.address.chat}: {row.error or row.state}."
        f" It began: {' '.join(row.text.split())[:BEGINNING]}"
        for row in rows[:LISTED]
    ]
    if len(rows) > LISTED:
        lines.append(f"- … and {len(rows) - LISTED} more")
    return "\n".join([LOST.format(count=count), *lines, HOW])
