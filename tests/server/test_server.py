"""The server as clients see it: over real sockets, before a real gateway."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from limpet.cli.group import Invocation
from limpet.config.server_token import server_token
from limpet.household import open_gateway
from limpet.server.guard import Guard
from limpet.testing.clock import FakeClock
from limpet.testing.fakes import FakeOpenAI
from limpet.testing.fakes.script import Script
from tests.gateway.house import echo

Frame = dict[str, object]


class Here:
    """A served gateway."""

    def __init__(self, home: Path, port: int, model: FakeOpenAI) -> None:
        self.home = home
        self.port = port
        self.model = model

    @property
    def token(self) -> str:
        return (self.home / "server-token").read_text().strip()

    @asynccontextmanager
    async def client(self, *, token: str = "", chats: dict[str, str] | None = None) -> AsyncGenerator[ClientConnection]:
        async with connect(f"ws://127.0.0.1:{self.port}/ws") as socket:
            await say(socket, {"type": "connect", "token": token or self.token, "chats": chats or {"main": ""}})
            yield socket

    async def get(self, path: str, **headers: str) -> tuple[int, str]:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{self.port}{path}", headers=headers) as answer,
        ):
            return answer.status, await answer.text()


@asynccontextmanager
async def served(home: Path, *, config: str = "", script: Script = echo) -> AsyncGenerator[Here]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    async with FakeOpenAI(script) as model:
        home.mkdir(exist_ok=True)
        file = home / "config.toml"
        file.write_text(
            f'agent.model = "lab/dreamer"\ngateway.port = {port}\ngateway.drain = 0.5\n'
            f'[providers.lab]\nbase_url = "{model.base_url}"\napi_key = "sk-test"\n{config}'
        )
        async with open_gateway(Invocation(config=str(file))) as gateway:
            stop = asyncio.Event()
            running = asyncio.create_task(gateway.run(stop))
            here = Here(home, port, model)
            try:
                async with asyncio.timeout(30):
                    while (await ready(here)) != 200:
                        await asyncio.sleep(0.05)
                yield here
            finally:
                stop.set()
                await running


async def ready(here: Here) -> int:
    try:
        return (await here.get("/readyz"))[0]
    except aiohttp.ClientError:
        return 0


async def say(client: ClientConnection, frame: Frame) -> None:
    await client.send(json.dumps(frame))


async def hear(client: ClientConnection, kind: str, body: str = "") -> Frame:
    """The next frame of a type (and an event of a kind)."""
    async with asyncio.timeout(30):
        while True:
            frame: Frame = json.loads(await client.recv())
            found = frame.get("body")
            if frame["type"] == kind and (not body or (isinstance(found, dict) and found["kind"] == body)):
                return frame


def ask(number: int, method: str, **fields: object) -> Frame:
    return {"type": "request", "id": str(number), "call": {"method": method, **fields}}


def test_what_is_said_is_answered_and_seen_while_it_is_written(home: Path) -> None:
    async def main() -> None:
        async with served(home) as here, here.client() as client:
            assert (await hear(client, "hello"))["protocol"] == 1
            await say(client, ask(1, "send", chat="main", text="hello", key="k1"))
            assert (await hear(client, "response"))["result"] == {"result": "sent", "is_new": True}
            assert (await hear(client, "event", "live"))["chat"] == "main"
            message = await hear(client, "event", "message")
            assert message["cursor"]
            assert message["body"] == {"kind": "message", "text": "echo: hello"} | {
                key: value for key, value in dict(message["body"]).items() if key not in ("kind", "text")
            }
            await say(client, ask(2, "history", chat="main"))
            told = (await hear(client, "response"))["result"]
            assert isinstance(told, dict)
            assert [one["role"] for one in told["messages"]] == ["user", "assistant"]

    asyncio.run(main())


def test_a_key_is_one_message_and_a_cursor_brings_what_was_missed(home: Path) -> None:
    async def main() -> list[str]:
        async with served(home) as here:
            async with here.client() as client:
                await say(client, ask(1, "send", chat="main", text="hello", key="same"))
                assert (await hear(client, "response"))["result"] == {"result": "sent", "is_new": True}
                first = await hear(client, "event", "message")
                await say(client, ask(2, "send", chat="main", text="hello", key="same"))
                assert (await hear(client, "response"))["result"] == {"result": "sent", "is_new": False}
                await say(client, ask(3, "send", chat="main", text="again", key="other"))
                await hear(client, "response")
            found: list[str] = []
            for cursor in (str(first["cursor"]), "0.0"):
                async with here.client(chats={"main": cursor}) as client:
                    texts = [
                        str(dict((await hear(client, "event", "message"))["body"])["text"])
                        for _ in range(1 + (cursor == "0.0"))
                    ]
                    found.append(" ".join(texts))
            return found

    assert asyncio.run(main()) == ["echo: again", "echo: hello echo: again"]


def test_chats_are_conversations_of_their_own(home: Path) -> None:
    async def main() -> list[object]:
        async with served(home) as here, here.client(chats={"one": "", "two": ""}) as client:
            await say(client, ask(1, "send", chat="one", text="first", key="a"))
            await hear(client, "event", "message")
            await say(client, ask(2, "send", chat="two", text="/status", key="b"))
            message = await hear(client, "event", "message")
            return [message["chat"], "agent:main:web:two" in str(message["body"])]

    assert asyncio.run(main()) == ["two", True]


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ('{"type": "connect", "token": "wrong"}', "unauthorised"),
        ("no json", "invalid"),
        ('{"type": "request", "id": "1", "call": {"method": "status"}}', "invalid"),
        ("[" * 50_000, "invalid"),
    ],
)
def test_who_does_not_greet_properly_is_told_and_sent_away(home: Path, frame: str, code: str) -> None:
    async def main() -> object:
        async with served(home) as here, connect(f"ws://127.0.0.1:{here.port}/ws") as client:
            await client.send(frame)
            refusal = json.loads(await client.recv())
            with pytest.raises(ConnectionClosed):
                await client.recv()
            return refusal["error"]["code"]

    assert asyncio.run(main()) == code


def test_bad_requests_are_answered_and_the_connection_stays(home: Path) -> None:
    async def main() -> list[object]:
        async with served(home) as here, here.client() as client:
            found: list[object] = []
            for frame in (
                "{}",
                json.dumps(ask(1, "send", chat="../x", text="t", key="k")),
                json.dumps(ask(1, "send", chat="main", text="", key="k")),
                json.dumps(ask(1, "nothing")),
                json.dumps(ask(1, "follow", chat="main", cursor="x")),
            ):
                await client.send(frame)
                answer = await hear(client, "response")
                found.append((answer["id"], dict(answer["error"])["code"]))  # type: ignore[call-overload]
            await say(client, ask(9, "status"))
            found.append(dict((await hear(client, "response"))["result"])["is_ready"])  # type: ignore[call-overload]
            return found

    assert asyncio.run(main()) == [("", "invalid"), *[("1", "invalid")] * 4, True]


def test_pages_of_others_and_rebound_names_are_refused(home: Path) -> None:
    async def main() -> list[int]:
        async with served(home) as here:
            codes = [
                (await here.get("/healthz", Origin="https://evil.example"))[0],
                (await here.get("/healthz", Host="evil.example"))[0],
                (await here.get("/healthz"))[0],
            ]
            with pytest.raises(InvalidStatus):
                async with connect(f"ws://127.0.0.1:{here.port}/ws", origin="https://evil.example"):  # type: ignore[arg-type]
                    pass
            return codes

    assert asyncio.run(main()) == [403, 403, 200]


def test_files_need_the_token_and_are_downloads(home: Path) -> None:
    async def main() -> list[object]:
        async with served(home) as here, here.client() as client:
            await hear(client, "hello")
            (home / "workspace" / "page.html").write_text("<script>")
            return [
                (await here.get("/files/" + "0" * 64))[0],
                (await here.get("/files/" + "0" * 64, Authorization=f"Bearer {here.token}"))[0],
                (await here.get("/files/..%2f..%2fconfig.toml", Authorization=f"Bearer {here.token}"))[0],
            ]

    assert asyncio.run(main()) == [401, 404, 404]


def test_the_schema_of_the_protocol_is_published(home: Path) -> None:
    async def main() -> object:
        async with served(home) as here:
            status, text = await here.get("/protocol.json")
            assert status == 200
            return json.loads(text)["version"]

    assert asyncio.run(main()) == 1


def test_metrics_tell_what_waits(home: Path) -> None:
    async def main() -> str:
        async with served(home) as here:
            return (await here.get("/metrics"))[1]

    text = asyncio.run(main())
    assert 'limpet_channel_connected{channel="web",account="main"} 1' in text
    assert "limpet_inbox_waiting 0" in text


def test_wrong_tokens_lock_an_address_out_for_a_while() -> None:
    clock = FakeClock()
    guard = Guard("right", host="127.0.0.1", clock=clock)
    assert not any(guard.admits("wrong", "1.2.3.4") for _ in range(10))
    assert not guard.admits("right", "1.2.3.4")
    assert guard.admits("right", "1.2.3.5")
    clock.advance(61)
    assert guard.admits("right", "1.2.3.4")


def test_a_server_that_others_can_reach_needs_a_token(tmp_path: Path) -> None:
    from limpet.errors import ConfigError

    with pytest.raises(ConfigError, match="without a token"):
        server_token("", host="0.0.0.0", root=tmp_path)
    assert server_token("given", host="0.0.0.0", root=tmp_path) == "given"
    made = server_token("", host="127.0.0.1", root=tmp_path)
    assert server_token("", host="::1", root=tmp_path) == made
    assert (tmp_path / "server-token").stat().st_mode & 0o077 == 0
