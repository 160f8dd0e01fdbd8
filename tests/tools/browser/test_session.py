"""The browser starts late, ends with idleness and with the agent, and never outlives a killed one."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from limpet.errors import ToolError
from limpet.tools.browser.session import BrowserSettings
from tests.tools.browser.pages import GUARD, chromium, needs_chromium, site

pytestmark = needs_chromium

PAGE = {
    "/": "<title>Here</title>",
    "/set": "HTTP/1.1 200 x\r\nSet-Cookie: a=b; Max-Age=999\r\nContent-Length: 0\r\n\r\n",
}
AGENT = """
import asyncio, sys
from pathlib import Path
from tests.tools.browser.pages import chromium
async def main():
    async with chromium(Path(sys.argv[1])) as hands:
        await hands.do("open", url=sys.argv[2])
        print("open", flush=True)
        await asyncio.sleep(60)
asyncio.run(main())
"""


def marked(folder: Path) -> list[int]:
    """The processes that carry the mark of the browser in `folder`."""
    mark = (folder / "browser" / "lock").read_bytes()
    found: list[int] = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and mark in Path(f"/proc/{name}/environ").read_bytes():
                found.append(int(name))
        except OSError:
            continue
    return found


async def until_none(folder: Path) -> None:
    async with asyncio.timeout(20):
        while marked(folder):
            await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "chrome://version", "javascript:alert(1)", "data:text/html,x", "view-source:http://a", ""],
)
def test_what_is_no_web_address_starts_nothing(tmp_path: Path, url: str) -> None:
    async def main() -> None:
        async with chromium(tmp_path) as hands:
            with pytest.raises(ToolError, match="only http and https"):
                await hands.do("open", url=url)
            assert not hands.browser.is_running

    asyncio.run(main())


def test_it_starts_with_its_first_call_and_ends_with_the_agent(tmp_path: Path) -> None:
    async def main() -> None:
        async with asyncio.timeout(GUARD), site(PAGE) as there, chromium(tmp_path) as hands:
            assert not hands.browser.is_running
            await hands.do("open", url=there.url)
            assert marked(tmp_path)
        assert not marked(tmp_path)

    asyncio.run(main())


def test_it_ends_when_nobody_uses_it_and_starts_again(tmp_path: Path) -> None:
    async def main() -> None:
        quick = BrowserSettings(idle=0.1)
        async with asyncio.timeout(GUARD), site(PAGE) as there, chromium(tmp_path, settings=quick) as hands:
            await hands.do("open", url=there.url)
            await until_none(tmp_path)
            assert "Here" in await hands.do("open", url=there.url)

    asyncio.run(main())


def test_one_that_died_is_replaced(tmp_path: Path) -> None:
    async def main() -> None:
        async with asyncio.timeout(GUARD), site(PAGE) as there, chromium(tmp_path) as hands:
            await hands.do("open", url=there.url)
            for pid in marked(tmp_path):
                os.kill(pid, signal.SIGKILL)
            await until_none(tmp_path)
            assert "Here" in await hands.do("open", url=there.url)

    asyncio.run(main())


def test_it_does_not_outlive_a_killed_agent(tmp_path: Path) -> None:
    async def main() -> None:
        async with asyncio.timeout(GUARD), site(PAGE) as there:
            root = Path(__file__).resolve().parents[3]
            agent = await asyncio.create_subprocess_exec(
                sys.executable, "-c", AGENT, str(tmp_path), there.url, cwd=root, stdout=asyncio.subprocess.PIPE
            )
            assert agent.stdout is not None
            assert await agent.stdout.readline() == b"open\n"
            assert marked(tmp_path)
            agent.kill()
            await agent.wait()
            await until_none(tmp_path)
            async with chromium(tmp_path) as hands:
                assert "Here" in await hands.do("open", url=there.url)

    asyncio.run(main())


def test_a_profile_has_one_user_and_keeps_what_sites_store(tmp_path: Path) -> None:
    async def main() -> None:
        async with asyncio.timeout(GUARD), site(PAGE) as there:
            async with chromium(tmp_path) as first:
                await first.do("open", url=f"{there.url}/set")
                async with chromium(tmp_path) as second:
                    with pytest.raises(ToolError, match="Another Limpet process"):
                        await second.do("open", url=there.url)
            assert (tmp_path / "browser").stat().st_mode & 0o077 == 0

    asyncio.run(main())


def test_a_stop_while_it_starts_leaves_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with asyncio.timeout(GUARD):
            async with chromium(tmp_path) as hands:
                task = asyncio.create_task(hands.do("open", url="http://127.0.0.1:9"))
                await asyncio.sleep(0.1)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            assert not marked(tmp_path)

    asyncio.run(main())


def test_a_stop_in_the_middle_leaves_it_usable(tmp_path: Path) -> None:
    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def main() -> None:
        async with asyncio.timeout(GUARD), site(PAGE) as there, chromium(tmp_path) as hands:
            await hands.do("open", url=there.url)
            silent = await asyncio.start_server(never, "127.0.0.1", 0)
            port = silent.sockets[0].getsockname()[1]
            task = asyncio.create_task(hands.do("open", url=f"http://127.0.0.1:{port}"))
            await asyncio.sleep(0.2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert "Here" in await hands.do("open", url=there.url)
            silent.close()

    asyncio.run(main())
