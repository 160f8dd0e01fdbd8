"""The client of tools: what it refuses, and where it stops. A canary counts who reaches it."""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from limpet.errors import LimpetError, NetworkRefusedError, ToolError
from limpet.net.client import Caps, Web
from limpet.net.guard import Guard, NetworkRules

HERE = Guard(NetworkRules(allow_cidrs=("127.0.0.0/8",)))
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Canary:
    def __init__(self) -> None:
        self.visits: list[str] = []
        self.port = 0


@asynccontextmanager
async def canary(handler: Handler | None = None) -> AsyncGenerator[Canary]:
    bird = Canary()

    async def answer(request: web.Request) -> web.StreamResponse:
        bird.visits.append(request.path)
        return await handler(request) if handler else web.Response(text="here")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    bird.port = runner.addresses[0][1]
    try:
        yield bird
    finally:
        await runner.cleanup()


@asynccontextmanager
async def client(guard: Guard) -> AsyncGenerator[Web]:
    opened = Web(guard)
    try:
        yield opened
    finally:
        await opened.close()


FORMS = [
    "http://127.0.0.1:{port}/",
    "http://localhost:{port}/",
    "http://LOCALHOST:{port}/",
    "http://[::1]:{port}/",
    "http://0x7f000001:{port}/",
    "http://2130706433:{port}/",
    "http://0177.0.0.1:{port}/",
    "http://127.1:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "http://[64:ff9b::7f00:1]:{port}/",
    "http://[2001:db8::5efe:127.0.0.1]:{port}/",
    "http://169.254.169.254/",
    "http://100.64.0.1/",
    "http://198.18.0.1/",
    "http://0.0.0.0:{port}/",
    "http://user:pass@127.0.0.1:{port}/",
    "http://example.com@127.0.0.1:{port}/",
    "file:///etc/passwd",
    "FILE:///etc/passwd",
    "ftp://127.0.0.1/",
    "gopher://127.0.0.1:{port}/",
]


@pytest.mark.parametrize("form", FORMS)
def test_c64_no_form_of_a_private_address_is_reached(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with canary() as bird, client(Guard()) as web_client:
            monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{bird.port}")
            with pytest.raises(LimpetError) as raised:
                await web_client.get(form.format(port=bird.port))
            assert isinstance(raised.value, NetworkRefusedError), raised.value
            assert bird.visits == []

    asyncio.run(main())


def test_c64_only_an_allowed_network_passes() -> None:
    async def main() -> None:
        async with canary() as bird, client(Guard(NetworkRules(allow_cidrs=("127.0.0.1/32",)))) as web_client:
            assert (await web_client.get(f"http://127.0.0.1:{bird.port}/")).body == b"here"
            with pytest.raises(NetworkRefusedError):
                await web_client.get(f"http://127.0.0.2:{bird.port}/")
            assert len(bird.visits) == 1

    asyncio.run(main())


def test_c64_a_redirect_to_a_private_address_is_refused() -> None:
    async def main() -> None:
        async with canary() as bird:

            async def away(request: web.Request) -> web.Response:
                return web.Response(status=302, headers={"Location": f"http://127.0.0.2:{bird.port}/secret"})

            only = Guard(NetworkRules(allow_cidrs=("127.0.0.1/32",)))
            async with canary(away) as door, client(only) as web_client:
                with pytest.raises(NetworkRefusedError, match=r"127\.0\.0\.2"):
                    await web_client.get(f"http://127.0.0.1:{door.port}/")
                assert bird.visits == []

    asyncio.run(main())


def test_c64_a_name_that_changes_its_mind_is_refused_at_the_socket() -> None:
    """The look-up ahead says a public address, the one of the connection says loopback."""

    async def main() -> None:
        async with canary() as bird, client(Guard()) as web_client:
            loop = asyncio.get_running_loop()
            answers = [("93.184.216.34", 80)]

            async def look_up(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
                place = answers.pop(0) if answers else ("127.0.0.1", bird.port)
                return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", place)]

            loop.getaddrinfo = look_up  # type: ignore[method-assign, assignment]
            with pytest.raises(NetworkRefusedError):
                await web_client.get(f"http://rebind.example:{bird.port}/")
            assert bird.visits == []

    asyncio.run(main())


def fetch(handler: Handler, caps: Caps = Caps()):  # noqa: B008
    async def main():
        async with canary(handler) as bird, client(HERE) as web_client:
            return await web_client.get(f"http://127.0.0.1:{bird.port}/", caps=caps)

    return asyncio.run(main())


def test_a_page_comes_with_status_and_type() -> None:
    async def page(request: web.Request) -> web.Response:
        return web.Response(text="hello", status=404, content_type="text/html")

    found = fetch(page)
    assert (found.status, found.content_type, found.body, found.cut) == (404, "text/html", b"hello", False)


def test_c56_a_compressed_page_is_unpacked_and_a_bomb_is_cut() -> None:
    async def bomb(request: web.Request) -> web.Response:
        return web.Response(body=gzip.compress(bytes(200_000_000), 1), headers={"Content-Encoding": "gzip"})

    found = fetch(bomb, Caps(bytes=1_000_000))
    assert (len(found.body), found.cut) == (1_000_000, True)


def test_c56_a_drip_ends_at_the_deadline() -> None:
    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b".")
            await asyncio.sleep(0.05)

    with pytest.raises(ToolError, match=r"within 0\.5 s"):
        fetch(drip, Caps(seconds=0.5))


def test_c56_endless_redirects_end() -> None:
    count = 0

    async def again(request: web.Request) -> web.Response:
        nonlocal count
        count += 1
        return web.Response(status=302, headers={"Location": f"/{count}"})

    with pytest.raises(ToolError, match="redirects more than 5 times"):
        fetch(again)
    assert count == 6


def test_a_server_that_is_gone_and_addresses_that_are_none_are_said() -> None:
    async def main() -> None:
        async with client(HERE) as web_client:
            for url, words in (
                ("http://127.0.0.1:1/", "cannot be reached"),
                ("http://", "names no host"),
                ("http://[::1", "no address"),
                ("http://nowhere.invalid/", "cannot be found"),
            ):
                with pytest.raises(ToolError, match=words):
                    await web_client.get(url)

    asyncio.run(main())


def test_a_key_does_not_follow_a_redirect_elsewhere() -> None:
    async def main() -> None:
        seen: list[str | None] = []

        async def note(request: web.Request) -> web.Response:
            seen.append(request.headers.get("Authorization"))
            return web.Response(text="ok")

        async with canary(note) as bird:

            async def away(request: web.Request) -> web.Response:
                return web.Response(status=307, headers={"Location": f"http://127.0.0.1:{bird.port}/"})

            async with canary(away) as door, client(HERE) as web_client:
                await web_client.get(f"http://127.0.0.1:{door.port}/", headers={"Authorization": "Bearer x"})
        assert seen == [None]

    asyncio.run(main())
