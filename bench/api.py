"""The API: what a request costs the gateway's process over the same turn that comes through the inbox."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import socket
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from bench.fake import Fake, environment, fake, folder
from bench.home import settle
from bench.report import Figure, Report, median
from limpet.cli.group import Invocation
from limpet.gateway.gateway import Gateway
from limpet.gateway.programs import Outcome, Saying
from limpet.household import open_gateway
from limpet.types.ids import new_id

OVERHEAD = 5.0
"""ms of CPU."""
TEXT = "What is a limpet?"
CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
Turn = Callable[[str], Awaitable[None]]


def measure(*, quick: bool) -> Report:
    """Blocks of turns, of each way in turn; medians of the blocks. The client is a thread, whose CPU is taken off."""
    with fake() as server, folder() as home:
        found = asyncio.run(_measure(server, home, blocks=2 if quick else 15, rounds=2 if quick else 20))
    inbox = median(found["inbox"])
    figures = [Figure("through the inbox", "CPU", inbox, "ms")]
    for name, samples in found.items():
        if name == "inbox":
            continue
        figures.append(Figure(name, "CPU", median(samples), "ms"))
        figures.append(Figure(name, "over the inbox", median(samples) - inbox, "ms", goal=OVERHEAD))
    notes = [
        "all threads of the gateway's process but the client's; the fake model is a process apart",
        "each turn goes on in the session of its way; up to the answer that the client has read",
    ]
    return Report("The API", figures, notes)


async def _measure(server: Fake, home: Path, *, blocks: int, rounds: int) -> dict[str, list[float]]:
    async with _gateway(server, home) as (gateway, port, token):
        client = _Client(port, token)
        messages = [{"role": "user", "content": TEXT}]
        chat = {"model": "limpet", "messages": messages}
        ways: dict[str, Turn] = {
            "inbox": lambda session: _inbox(gateway, session),
            "chat completions": lambda session: client.post(CHAT, chat, session),
            "chat completions, streamed": lambda session: client.post(CHAT, {**chat, "stream": True}, session),
            "messages": lambda session: client.post(MESSAGES, {**chat, "max_tokens": 500}, session),
            "responses": lambda session: client.post(RESPONSES, {"model": "limpet", "input": TEXT}, session),
        }
        for name, turn in ways.items():
            await turn(_session(name))
        if blocks > 2:
            settle()
        found: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(blocks):
            for name, turn in ways.items():
                cpu, apart = time.process_time(), client.cpu
                for _ in range(rounds):
                    await turn(_session(name))
                cpu = time.process_time() - cpu - (client.cpu - apart)
                found[name].append(cpu * 1e3 / rounds)
        client.close()
        return found


def _session(name: str) -> str:
    return name.replace(" ", "-").replace(",", "")


@asynccontextmanager
async def _gateway(server: Fake, home: Path) -> AsyncGenerator[tuple[Gateway, int, str]]:
    """A whole gateway in this process, whose environment it takes over."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    os.environ.clear()
    os.environ.update(environment(home, server, LIMPET_GATEWAY__PORT=str(port)))
    async with open_gateway(Invocation()) as gateway:
        stop = asyncio.Event()
        running = asyncio.create_task(gateway.run(stop))
        try:
            yield gateway, port, (home / "limpet" / "server-token").read_text().strip()
        finally:
            stop.set()
            await running


async def _inbox(gateway: Gateway, session: str) -> None:
    """The same turn with nothing of HTTP around it."""
    saying = Saying("bench", session, new_id("e"), TEXT, trust="owner")
    row = await gateway.programs.say(saying)
    async for one in gateway.programs.follow(row):
        if isinstance(one, Outcome) and one.state != "done":
            raise RuntimeError(f"the turn ended as {one.state}: {one.text}")


class _Client:
    """Asks in a thread and counts its CPU; it holds one connection, as clients do."""

    def __init__(self, port: int, token: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self.cpu = 0.0

    async def post(self, path: str, body: object, session: str) -> None:
        await asyncio.to_thread(self._post, path, json.dumps(body), session)

    def _post(self, path: str, body: str, session: str) -> None:
        began = time.thread_time()
        self._connection.request("POST", path, body, {**self._headers, "X-Limpet-Session": session})
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {text[:300]!r}")
        self.cpu += time.thread_time() - began

    def close(self) -> None:
        self._connection.close()
