"""What a streamed answer costs: CPU of the thread that reads 2,000 deltas, on every wire, and of the first one."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
from msgspec import structs

from bench.fake import Fake, folder
from bench.home import assistant, say, session
from bench.report import Figure, Report, median
from limpet.llm.build import wire_of
from limpet.llm.http import Http
from limpet.testing.fakes.anthropic import AnthropicService
from limpet.testing.fakes.bedrock import BedrockService
from limpet.testing.fakes.gemini import GeminiService
from limpet.testing.fakes.openai import OpenAIService
from limpet.testing.fakes.responses import ResponsesService
from limpet.testing.fakes.script import Reply, Seen
from limpet.testing.fakes.server import Service
from limpet.testing.wires import ask
from limpet.types.event import Event, TextDelta
from limpet.types.profile import Profile, Wire

DELTAS = 2_000
ALONE_DELTAS = 500
"""One by one they take a millisecond each, whatever it costs to read them."""
TOGETHER, ALONE, FIRST = 60.0, 1.6, 2.0
SERVICES: dict[Wire, Callable[[], Service]] = {
    "openai_chat": OpenAIService,
    "openai_responses": ResponsesService,
    "anthropic": AnthropicService,
    "gemini": GeminiService,
    "bedrock": BedrockService,
}


def measure(*, quick: bool) -> Report:
    """Medians over several answers, after one that warms up."""
    rounds = 2 if quick else 9
    figures: list[Figure] = []
    for wire, service in SERVICES.items():
        for segment, name in ((100, "100 to a segment"), (1, "one by one")):
            ours, bare, ratio = _measure(wire, service(), segment=segment, rounds=rounds)
            label = f"{wire}, {name}"
            figures.append(Figure(label, "CPU", ours, "ms", TOGETHER if segment > 1 else None))
            figures.append(Figure(label, "bare reader", bare, "ms"))
            figures.append(Figure(label, "ratio", ratio, "x", ALONE if segment == 1 else None))
    figures.append(Figure("first delta, to a watcher of a turn", "CPU", _first(turns=4 * rounds), "ms", FIRST))
    notes = [
        f"medians of {rounds} answers of {DELTAS} deltas (one by one {ALONE_DELTAS}); CPU of the reading thread alone"
    ]
    return Report("A streamed answer", figures, notes)


def _measure(wire: Wire, service: Service, *, segment: int, rounds: int) -> tuple[float, float, float]:
    seen = Seen(path="/model/m/converse-stream", headers={}, raw=b"", body={"model": "m", "stream": True})
    count = DELTAS if segment > 1 else ALONE_DELTAS
    events = service.events(Reply(text=tuple(f"word{n} " for n in range(count))), seen)
    if len(events) < count:
        raise RuntimeError(f"the fake of {wire} does not stream")
    parts = [b"".join(events[at : at + segment]) for at in range(0, len(events), segment)]
    with _server(parts, service.content_type) as url:
        return asyncio.run(_compare(wire, url, rounds=rounds))


async def _compare(wire: Wire, url: str, *, rounds: int) -> tuple[float, float, float]:
    profile = structs.replace(Profile(provider="bench", wire=wire, model="m"), base_url=url)
    model = wire_of(profile, "k", blobs=None, http=Http(profile.provider))
    ours: list[float] = []
    bare: list[float] = []
    async with aiohttp.ClientSession() as session:
        for _ in range(rounds + 1):
            start = time.thread_time()
            async for _event in model.stream(ask()):
                pass
            ours.append((time.thread_time() - start) * 1e3)
            start = time.thread_time()
            async with session.post(url, data=b"{}") as response:
                async for _chunk in response.content.iter_any():
                    pass
            bare.append((time.thread_time() - start) * 1e3)
    await model.close()
    ratios = [one / other for one, other in zip(ours[1:], bare[1:], strict=True)]  # each of one moment, one load
    return median(ours[1:]), median(bare[1:]), median(ratios)


def _first(*, turns: int) -> float:
    """CPU (ms) of the assistant's thread from the arrival of the first delta until a watcher has it; the median."""
    service = OpenAIService()
    seen = Seen(path="", headers={}, raw=b"", body={"model": "m", "stream": True})
    events = service.events(Reply(text=("A limpet ", "holds on.")), seen)
    clock = time.pthread_getcpuclockid(threading.get_ident())
    arrived: list[float] = []
    found: list[float] = []

    def emit(event: Event) -> None:
        if isinstance(event, TextDelta) and arrived:
            found.append((time.thread_time() - arrived.pop()) * 1e3)

    async def talk(home: Path, url: str) -> None:
        async with assistant(home, Fake(url, "sk-test", home / "unused"), emit=emit) as services:
            conversation = session(services, "first")
            for _ in range(turns):
                await say(conversation, "What is a limpet?")

    def sending() -> None:
        arrived.append(time.clock_gettime(clock))

    with _server(events, service.content_type, first=sending) as url, folder() as home:
        asyncio.run(talk(home, url))
    return median(found[1:])


@contextmanager
def _server(parts: list[bytes], content_type: str, *, first: Callable[[], None] | None = None) -> Iterator[str]:
    """A server on a thread of its own that answers every POST with `parts`, each in a segment of its own.

    `first` is called before the second part, when the reader has long been waiting for it.
    """
    started = threading.Event()
    address: list[str] = []
    servers: list[asyncio.Server] = []
    loop = asyncio.new_event_loop()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                size = next((int(x[15:]) for x in head.lower().split(b"\r\n") if x.startswith(b"content-length:")), 0)
                await reader.readexactly(size)
                lead = f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nTransfer-Encoding: chunked\r\n\r\n"
                writer.write(lead.encode())
                for at, part in enumerate(parts):
                    if at == 1 and first is not None and head.startswith(b"POST"):
                        await asyncio.sleep(0.03)
                        first()
                    writer.write(b"%x\r\n%s\r\n" % (len(part), part))
                    await writer.drain()
                    await asyncio.sleep(0.0002)  # so that the reader sees each one
                writer.write(b"0\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def serve() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        servers.append(server)
        address.append(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        started.set()

    def run() -> None:
        loop.run_until_complete(serve())
        loop.run_forever()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    started.wait(10)
    try:
        yield address[0]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        servers[0].close()
        loop.run_until_complete(_end(asyncio.all_tasks(loop)))
        loop.close()


async def _end(tasks: set[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(0)
