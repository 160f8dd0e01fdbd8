"""Logging in: against a real authorisation server of the SDK, in a process of its own on loopback."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from msgspec import structs

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from limpet.errors import InputError, ToolError
from limpet.mcp.callback import Callback, listening
from limpet.mcp.kept import Records
from limpet.mcp.oauth import Login, Logins, new_login
from limpet.mcp.sdk import connect
from limpet.mcp.server import Server
from limpet.mcp.spec import ServerSpec
from limpet.testing.clock import FakeClock
from limpet.testing.fakes import mcp_oauth

PROGRAM = str(mcp_oauth.__file__)


@asynccontextmanager
async def locked() -> AsyncGenerator[str]:
    """The address of a server that demands a login."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        sys.executable, PROGRAM, str(port), stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(30):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                except OSError:
                    await asyncio.sleep(0.05)
                    continue
                writer.close()
                await writer.wait_closed()
                break
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        await process.wait()


async def browse(address: str, *, follow: bool = True) -> str:
    """What a browser does with the address; gives where it is sent."""
    async with aiohttp.ClientSession() as browser, browser.get(address, allow_redirects=False) as answer:
        sent = answer.headers["Location"]
    if follow:
        async with aiohttp.ClientSession() as browser, browser.get(sent) as page:
            assert "You are logged in" in await page.text()
    return sent


async def log_in(spec: ServerSpec, folder: Path, *, paste: bool = False) -> None:
    tasks: list[asyncio.Task[None]] = []
    async with listening(patience=20) as callback:

        async def person(address: str) -> None:
            sent = await browse(address, follow=not paste)
            if paste:
                assert callback.take(sent)

        def show(address: str) -> None:
            tasks.append(asyncio.create_task(person(address)))

        signed = new_login(Logins(folder), spec.name, spec.url, callback=callback, show=show)
        async with connect(spec, folder / "log", refusals=[], login=signed) as connection:
            assert [tool.name for tool in (await connection.list_tools())[0]] == ["add"]
        await asyncio.gather(*tasks)


async def call(spec: ServerSpec, folder: Path) -> str:
    server = Server(spec, Records(folder), clock=FakeClock())
    try:
        return (await server.call("add", {"a": 1, "b": 2}, progress=print)).content[0].text
    finally:
        await server.close()


def test_a_login_is_kept_encrypted_renewed_and_ended(tmp_path: Path) -> None:
    async def main() -> None:
        async with locked() as url:
            spec = ServerSpec(name="far", url=url, home=str(tmp_path))
            with pytest.raises(ToolError, match=r"wants a login \(limpet mcp login far"):
                await call(spec, tmp_path)
            await log_in(spec, tmp_path)
            assert await call(spec, tmp_path) == "3"
            logins = Logins(tmp_path)
            first = logins.find("far", url)
            assert first
            token = first.tokens.split('"access_token":"')[1].split('"')[0]
            kept = "".join(path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file())
            assert token not in kept
            logins.keep("far", structs.replace(first, expires=1.0))
            assert await call(spec, tmp_path) == "3"
            renewed = logins.find("far", url)
            assert renewed
            assert renewed.tokens != first.tokens
            logins.keep("far", structs.replace(renewed, expires=1.0, tokens=first.tokens))
            with pytest.raises(ToolError, match="limpet mcp login far"):
                await call(spec, tmp_path)
            assert logins.forget("far")
            assert not logins.forget("far")

    asyncio.run(main())


def test_the_last_address_can_be_pasted(tmp_path: Path) -> None:
    async def main() -> None:
        async with locked() as url:
            spec = ServerSpec(name="far", url=url, home=str(tmp_path))
            await log_in(spec, tmp_path, paste=True)
            assert await call(spec, tmp_path) == "3"

    asyncio.run(main())


def test_a_login_is_for_its_address_only(tmp_path: Path) -> None:
    logins = Logins(tmp_path)
    logins.keep("a b/ü", Login(url="https://one.example/mcp"))
    assert logins.find("a b/ü", "https://one.example/mcp")
    assert logins.find("a b/ü", "https://two.example/mcp") is None
    assert logins.find("a b", "https://one.example/mcp") is None


@pytest.mark.parametrize(
    ("query", "words"), [("error=access_denied&error_description=Not+you", "Not you"), ("code=1&state=2", "")]
)
def test_a_no_is_an_error_with_its_reason(query: str, words: str) -> None:
    async def main() -> None:
        callback = Callback(1, patience=5)
        assert not callback.take("http://127.0.0.1:1/callback?state=2")
        assert callback.take(f"http://127.0.0.1:1/callback?{query}")
        if words:
            with pytest.raises(InputError, match=words):
                await callback.wait()
        else:
            assert await callback.wait() == {"code": "1", "state": "2"}

    asyncio.run(main())


def test_nobody_who_comes_is_an_error() -> None:
    async def main() -> None:
        with pytest.raises(InputError, match="Nobody has logged in"):
            await Callback(1, patience=0.01).wait()

    asyncio.run(main())


def test_other_pages_and_rubbish_are_no_answer() -> None:
    async def main() -> None:
        async with listening(patience=0.05) as callback, aiohttp.ClientSession() as browser:
            async with browser.get(callback.url.replace("/callback", "/?code=1")) as page:
                assert page.status == 404
            port = int(callback.url.split(":")[2].split("/")[0])
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"\x00\r\n\r\n")
            await reader.read()
            writer.close()
            await writer.wait_closed()
            with pytest.raises(InputError):
                await callback.wait()

    asyncio.run(main())
