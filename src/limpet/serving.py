"""The server of the gateway, with webhooks and the page, as the settings want it. Part of the composition root."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from limpet import wiring
from limpet.config import page_password
from limpet.config.paths import Home
from limpet.config.secrets import resolve
from limpet.config.server_token import server_token
from limpet.errors import ConfigError, UserError
from limpet.gateway.gateway import SERVER, Gateway
from limpet.net.client import Web
from limpet.server.channel import WebChannel
from limpet.store.blobs import BlobStore
from limpet.types.clock import SystemClock

if TYPE_CHECKING:
    from limpet.household import Household
    from limpet.server.guard import Guard
    from limpet.server.house import House
    from limpet.webui.door import Door
    from limpet.webui.host import Host

log = logging.getLogger(__name__)

LISTENING = 2.0
"""Seconds that the gateway waits for its server, so that it is there when the gateway says that it is ready."""


@asynccontextmanager
async def serving(gateway: Gateway, agents: Household, home: Home, *, web: WebChannel) -> AsyncGenerator[None]:
    """The server beside the gateway. Where it cannot be, the gateway works without, and says so."""
    settings, state = agents.settings.gateway, agents.state
    if not settings.port:
        yield
        return
    try:
        from limpet.server.api.access import Access  # the extra `server`
        from limpet.server.api.conversing import Conversing
        from limpet.server.api.door import Door as Api
        from limpet.server.app import Server
        from limpet.server.guard import Guard
        from limpet.server.house import House
        from limpet.server.webhooks import Webhooks
    except ImportError as error:
        log.warning("no server: %s is not installed (pip install 'limpet[server]', or gateway.port = 0)", error.name)
        yield
        return
    given = resolve(settings.token, key="gateway.token", root=home.root, environ=os.environ)
    token = server_token(given, host=settings.host, root=home.root)
    guard = Guard(token, host=settings.host, clock=SystemClock())
    house = House(gateway, web, store=state.store, nudges=state.nudges, watch=agents.watch)

    def secret(reference: str, key: str) -> str:
        return _other(resolve(reference, key=key, root=home.root, environ=os.environ), token, key=key)

    webhooks = Webhooks(gateway.outside, lambda: agents.settings.webhooks, secret=secret, clock=SystemClock())
    net, clock = agents.settings.net, SystemClock()
    fetching = Web(wiring.guard(net), proxy=net.proxy)
    conversing = Conversing(gateway.programs, state.store, fetching, clock=clock)
    access = Access(state.store, guard, token=token, clock=clock)
    api = Api(access, agents, conversing=conversing, store=state.store, web=fetching, clock=clock)
    page = _page(agents, home, house=house, token=token, guard=guard)
    door = page[0] if page else None
    blob = BlobStore(str(home.blobs), state.store).path
    server = Server(house, guard, blob=blob, webhooks=webhooks, api=api.routes(), page=door)

    async def serve() -> None:
        try:
            await server.run(settings.host, settings.port)
        except UserError as error:
            log.error("%s", error.present())
            gateway.note_fault(SERVER, str(error))

    tasks = asyncio.create_task(serve()), asyncio.create_task(server.listening.wait())
    try:
        await asyncio.wait(tasks, timeout=LISTENING, return_when=asyncio.FIRST_COMPLETED)
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await api.close()
        if page:
            await page[1].close()


def _page(agents: Household, home: Home, *, house: House, token: str, guard: Guard) -> tuple[Door, Host] | None:
    """The page and its life; None where the extra `web` is not installed."""
    if find_spec("nicegui") is None:
        return None
    from limpet.webui.desk import Desk  # the extra `web`; NiceGUI itself is loaded when somebody comes in
    from limpet.webui.door import Door
    from limpet.webui.host import Host
    from limpet.webui.logins import Logins

    state, clock = agents.state, SystemClock()
    desk = Desk(
        gateway=house.gateway,
        agents=agents,
        voice=house,
        store=state.store,
        owner=state.owner,
        nudges=state.nudges,
        watch=agents.watch,
        clock=clock,
        home=home,
    )
    host = Host(desk)
    logins = Logins(home.root, token, clock=clock)
    door = Door(
        guard,
        logins,
        host.app,
        has_password=lambda: page_password.is_set(home.root),
        file=BlobStore(str(home.blobs), state.store).path,
    )
    return door, host


def _other(value: str, token: str, *, key: str) -> str:
    """A secret of webhooks, which is not the server's. Raises `ConfigError`."""
    if value == token:
        raise ConfigError(f"{key} is the token of the server, which other programs must not have.")
    return value
