from __future__ import annotations

import asyncio
import contextlib
import io
import logging
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from aiohttp import web

from limpet.channels.kinds import Means
from limpet.channels.notify.channel import NotifyChannel
from limpet.config.channels import NotifySettings
from limpet.errors import ChannelError, ConfigError, NotAcceptedError, RefusedError, UnsureError
from limpet.testing.clock import FakeClock
from limpet.types.envelope import Address
from tests.channel.harness import RecordingDesk, piece, running
from tests.channel.servers import free_port

pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning")  # modules that apprise imports
KEY = "kelp-4711"
PHONE = Address("notify", "main", "phone")


class Service:
    """Takes what `json://` sends; answers with `status`."""

    def __init__(self) -> None:
        self.port = free_port()
        self.status = 200
        self.given: list[tuple[str, str]] = []

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        async def take(request: web.Request) -> web.Response:
            told = await request.json()
            if self.status == 200:
                self.given.append((told["title"], told["message"]))
            return web.Response(status=self.status)

        app = web.Application()
        app.router.add_post("/{path:.*}", take)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", self.port).start()
            yield
        finally:
            await runner.cleanup()


def channel(url: str, **settings: str) -> NotifyChannel:
    one = NotifySettings(targets={"phone": "env:URL"}, **settings)
    return NotifyChannel("main", one, Means(FakeClock(), "", lambda _: url, str), wait=10.0)


def test_a_message_is_put_before_a_service_under_its_title() -> None:
    async def scene(service: Service) -> None:
        async with service.open():
            one, desk = channel(f"json://ann:{KEY}@127.0.0.1:{service.port}/x", title="Home"), RecordingDesk()
            async with running(one, desk):
                assert await one.send(piece(PHONE, "tea & <cake> 茶\n\nis ready")) == ""
        assert service.given == [("Home", "tea & <cake> 茶\n\nis ready")]
        assert desk.states == ["up"]

    asyncio.run(scene(Service()))


@pytest.mark.parametrize(
    ("status", "error"), [(429, NotAcceptedError), (403, RefusedError), (500, UnsureError), (0, NotAcceptedError)]
)
def test_failures_are_told_apart_as_far_as_they_are_known(status: int, error: type[ChannelError]) -> None:
    async def scene(service: Service) -> None:
        service.status = status
        async with service.open() if status else contextlib.nullcontext():
            one = channel(f"json://ann:{KEY}@127.0.0.1:{service.port}/{KEY}")
            with pytest.raises(error) as caught:
                await one.send(piece(PHONE, "hi"))
            assert KEY not in repr(caught.value)

    told = io.StringIO()
    root, handler = logging.getLogger(), logging.StreamHandler(told)
    level = root.level
    root.addHandler(handler)  # not `caplog`, which hears what is kept from the log
    root.setLevel(logging.DEBUG)
    try:
        asyncio.run(scene(Service()))
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    assert KEY not in told.getvalue()


def test_what_cannot_be_sent_is_refused() -> None:
    one = channel("json://127.0.0.1:1/")
    limit = one.traits.limit
    assert 30_000 < limit < 40_000
    for address, text in ((Address("notify", "main", "other"), "hi"), (PHONE, "x" * (limit + 1))):
        with pytest.raises(RefusedError):
            asyncio.run(one.send(piece(address, text)))


@pytest.mark.parametrize("url", ["", "nonsense", f"nosuchservice://{KEY}"])
def test_an_address_that_is_none_is_told_without_it(url: str) -> None:
    with pytest.raises(ConfigError, match=r"targets\.phone") as caught:
        channel(url)
    assert KEY not in str(caught.value)


def test_without_targets_there_is_no_channel(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="targets"):
        NotifyChannel("main", NotifySettings(), Means(FakeClock(), str(tmp_path), str, str))
