"""Channels: how each is, who may speak, who asks to, and what did not arrive."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from nicegui import ui

from limpet.errors import InputError
from limpet.store import outbox, peers
from limpet.store.peers import PairingCode, Peer, Role
from limpet.store.sql import Connection
from limpet.types.envelope import OutboxRow, OutboxState
from limpet.webui import texts
from limpet.webui.desk import Desk
from limpet.webui.parts import ask_first, heading, sheet, small_button, told, when

OPEN: tuple[OutboxState, ...] = ("queued", "attempting", "unknown", "failed", "expired")
BY = "page"
BEGINNING = 100
"""Characters of a message that is told of."""
Work = Callable[[Connection], object]
Do = Callable[[Work], Awaitable[None]]


def show(desk: Desk) -> None:
    """Health, codes that wait, people, and messages on their way."""

    async def do(work: Work) -> None:
        async with told():
            await desk.store.write(work)
            desk.nudges.send()
        body.refresh()

    @ui.refreshable
    def body() -> None:
        _health(desk)
        heading(texts.PAIR_CODES)
        codes = desk.store.read(lambda connection: peers.codes(connection, now=desk.clock.now()))
        for code in codes:
            _code(desk, code, do)
        if not codes:
            ui.label(texts.PAIR_NONE).classes("lp-dim")
        heading(texts.PAIR_PEOPLE)
        for one in desk.store.read(peers.listed):
            _person(desk, one, do)
        heading(texts.OUTBOX)
        rows = desk.store.read(lambda connection: outbox.listed(connection, OPEN))
        for row in rows:
            _part(desk, row, do)
        if not rows:
            ui.label(texts.OUTBOX_NONE).classes("lp-dim")

    with sheet(texts.NAV["/channels"][0]):
        body()  # pyright: ignore


def _health(desk: Desk) -> None:
    snapshot = desk.gateway.snapshot()
    for one in snapshot.channels:
        with ui.element("div").classes("lp-entry"):
            ui.label(f"{one.channel}:{one.account}").classes("text-weight-bold")
            ui.label(one.state).classes("lp-good" if one.state == "connected" else "lp-bad")
            flow = texts.CHANNEL_FLOW.format(since=when(one.since), received=when(one.received), sent=when(one.sent))
            ui.label(flow).classes("lp-dim")
            if one.error:
                ui.label(one.error).classes("lp-bad lp-wrap")
    for kind, account, why in snapshot.faults:
        with ui.element("div").classes("lp-entry"):
            ui.label(f"{kind}:{account}".rstrip(":")).classes("text-weight-bold")
            ui.label(why).classes("lp-bad lp-wrap")


def _code(desk: Desk, code: PairingCode, do: Do) -> None:
    """A code that waits: to be compared with what the stranger was told, also as a picture."""
    import segno  # for those who look at codes

    def approve(role: Role, connection: Connection) -> None:
        if peers.approve(connection, code.code, role=role, by=BY, now=desk.clock.now()) is None:
            raise InputError(f"The code {code.code} is over.")

    with ui.element("div").classes("lp-entry"):
        picture = segno.make(code.code, micro=False).png_data_uri(scale=3)
        ui.image(picture).style("width: 5.5rem").props(f'alt="{texts.PAIR_QR}"')
        with ui.element("div").classes("lp-grow"):
            ui.label(code.code).classes("lp-mono text-weight-bold")
            ui.label(f"{code.channel}:{code.account}:{code.peer} {code.name}").classes("lp-wrap")
            ui.label(texts.PAIR_UNTIL.format(when=when(code.expires))).classes("lp-dim")
        small_button(texts.PAIR_PEER, partial(do, partial(approve, "peer")))
        small_button(texts.PAIR_OWNER, lambda: ask_first(texts.PAIR_OWNER_SURE, partial(do, partial(approve, "owner"))))
        small_button(texts.PAIR_DISMISS, partial(do, partial(_dismiss, code.code)))


def _dismiss(code: str, connection: Connection) -> None:
    peers.dismiss(connection, code)


def _person(desk: Desk, one: Peer, do: Do) -> None:
    def revoke(connection: Connection) -> None:
        peers.revoke(connection, one, now=desk.clock.now())

    name = f"{one.channel}:{one.account}:{one.id}"
    with ui.element("div").classes("lp-entry"):
        ui.label(f"{name} {one.name}").classes("lp-grow lp-wrap")
        ui.label(texts.PAIR_SINCE.format(role=one.role, when=when(one.approved), by=one.by)).classes("lp-dim")
        if one.by != peers.CONFIGURED:
            small_button(
                texts.PAIR_REVOKE,
                lambda: ask_first(texts.PAIR_REVOKE_SURE.format(name=name), partial(do, revoke)),
            )


def _part(desk: Desk, row: OutboxRow, do: Do) -> None:
    """A message that has not arrived, or may not have."""

    def retry(connection: Connection) -> None:
        outbox.retry(connection, row.id, now=desk.clock.now())

    def drop(connection: Connection) -> None:
        outbox.drop(connection, row.id)

    with ui.element("div").classes("lp-entry"):
        ui.label(row.state).classes("lp-dim" if row.state in ("queued", "attempting") else "lp-bad")
        ui.label(" ".join(row.text.split())[:BEGINNING]).classes("lp-grow lp-wrap")
        ui.label(f"{row.address.channel} {row.address.chat} · {when(row.created)} {row.error}").classes(
            "lp-dim lp-wrap"
        )
        if row.state not in ("queued", "attempting"):
            small_button(texts.OUTBOX_RETRY, partial(do, retry))
        small_button(texts.OUTBOX_DROP, partial(do, drop))
