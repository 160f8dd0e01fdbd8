"""After a long outage: of many messages that piled up for a chat the newest are sent, the others summed up in one."""

from __future__ import annotations

from limpet.gateway.ground import Ground
from limpet.store import outbox
from limpet.store.sql import Connection
from limpet.types.envelope import OutboxRow, Part

OLD = 600_000
"""Milliseconds after which a message that was not sent counts as piled up."""
MOST = 5
"""Piled up messages that are still sent as they are."""
NEWEST = 3
BEGINNING = 80
LISTED = 20
SUMMED_UP = "summed up in one message after an outage"
TEXT = "While I could not reach you, {count} messages piled up. The newest {newest} follow. The others began:\n{lines}"


async def pile_up(ground: Ground, rows: list[OutboxRow], *, now: int) -> bool:
    """Sum up what has piled up for a chat; False when it is not that much."""
    old = [row for row in rows if row.state == "queued" and now - row.created > OLD and row.kind != "report"]
    if len(old) <= MOST:
        return False
    left = old[:-NEWEST]
    lines = [f"- {' '.join(row.text.split())[:BEGINNING]}" for row in left[:LISTED]]
    if len(left) > LISTED:
        lines.append(f"- … and {len(left) - LISTED} more; `limpet outbox list` has them all")
    text = TEXT.format(count=len(old), newest=NEWEST, lines="\n".join(lines))

    def work(connection: Connection) -> None:
        for row in left:
            outbox.settle(connection, row.id, state="expired", error=SUMMED_UP)
            outbox.mark_told(connection, [row.id], knows=outbox.OWNER_KNOWS)
        part = Part(left[0].address, text, f"pile:{left[-1].id}", "report")
        outbox.queue(connection, part, session="", turn="", now=now)
        outbox.move(connection, part.key, place=left[0].place)

    await ground.store.write(work)
    return True
