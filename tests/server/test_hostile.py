"""Clients and circumstances that are not what they should be."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed

from limpet.cli.group import Invocation
from limpet.errors import UserError
from limpet.gateway.status import read_snapshot
from limpet.household import open_gateway
from limpet.server.app import Server
from limpet.server.guard import FORGET, Guard
from limpet.server.house import House
from limpet.testing.clock import FakeClock
from tests.server.test_server import ask, hear, say, served


class NoHouse(House):
    def __init__(self) -> None:
        """Nothing is asked of it."""


def test_a_taken_port_is_an_error_that_names_it_and_ends_nothing_else() -> None:
    async def main() -> str:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = int(taken.getsockname()[1])
            server = Server(NoHouse(), Guard("t", host="127.0.0.1", clock=FakeClock()), blob=str)
            with pytest.raises(UserError) as caught:
                await server.run("127.0.0.1", port)
        with pytest.raises(UserError):
            await server.run("no-such-host.invalid", port)
        return str(caught.value)

    assert "Address already in use" in asyncio.run(main())


@pytest.mark.parametrize("cursor", ["99999999999999999999.1", "1.99999999999999999999", "-1.0", "1.x", "٣.٣"])
def test_a_cursor_beyond_reason_is_refused(home: Path, cursor: str) -> None:
    async def main() -> None:
        async with served(home) as here, here.client() as client:
            await say(client, ask(1, "follow", chat="other", cursor=cursor))
            error = (await hear(client, "response"))["error"]
            assert isinstance(error, dict)
            assert error["code"] == "invalid"
            await say(client, ask(2, "send", chat="main", text="hello", key="k"))
            await hear(client, "event", "message")

    asyncio.run(main())


def test_only_so_many_chats_can_be_followed(home: Path) -> None:
    async def main() -> object:
        async with served(home) as here, here.client() as client:
            await hear(client, "hello")
            for number in range(50):
                await say(client, ask(number + 1, "follow", chat=f"c{number}"))
            found = [(await hear(client, "response")).get("error") for _ in range(50)]
            assert found[:49] == [None] * 49
            return found[49]

    error = asyncio.run(main())
    assert isinstance(error, dict)
    assert error["code"] == "too_large"


@pytest.mark.parametrize("origin", ["http://[", "null", "http://127.0.0.1.evil.example", "\x7f"])
def test_an_origin_that_is_none_is_foreign(origin: str) -> None:
    guard = Guard("right", host="127.0.0.1", clock=FakeClock())
    assert guard.is_foreign({"host": "127.0.0.1:8790", "origin": origin})


def test_a_guard_remembers_no_more_than_it_must() -> None:
    clock = FakeClock()
    guard = Guard("right", host="127.0.0.1", clock=clock)
    for number in range(FORGET):
        guard.admits("wrong", f"peer {number}")
    clock.advance(61)
    guard.admits("wrong", "one more")
    assert guard.remembered == 1


def test_frames_in_bytes_and_with_half_characters_do_no_harm(home: Path) -> None:
    async def main() -> None:
        async with served(home) as here, here.client() as client:
            await hear(client, "hello")
            await client.send(b"\xff\xfe\x00")
            assert (await hear(client, "response"))["error"]
            await client.send(json.dumps(ask(1, "send", chat="main", text="half \ud800 of it", key="k")))
            assert (await hear(client, "response"))["error"]
            await say(client, ask(2, "send", chat="main", text="\x00\u202e<runtime>\x1b[2J", key="k"))
            await hear(client, "event", "message")

    asyncio.run(main())


def test_a_frame_that_is_too_large_ends_this_connection_alone(home: Path) -> None:
    async def main() -> None:
        async with served(home) as here:
            async with here.client() as client:
                await client.send("x" * 1_100_000)
                with pytest.raises(ConnectionClosed):
                    await hear(client, "nothing")
            async with here.client() as client:
                await hear(client, "hello")

    asyncio.run(main())


def test_the_status_file_of_a_dead_gateway_is_no_gateway(tmp_path: Path) -> None:
    path = tmp_path / "gateway.json"
    assert read_snapshot(str(path)) is None
    path.write_bytes(b'{"owner": 1')
    assert read_snapshot(str(path)) is None


def test_it_listens_once_the_gateway_is_opened(home: Path) -> None:
    async def main() -> int:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = int(free.getsockname()[1])
        home.mkdir()
        (home / "config.toml").write_text(f"gateway.port = {port}\n")
        async with open_gateway(Invocation(config=str(home / "config.toml"))):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            await writer.wait_closed()
        return port

    assert asyncio.run(main())
