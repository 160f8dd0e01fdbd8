"""Bytes of the first request of a fresh workspace, and of the installed core."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import msgspec
from msgspec import Raw

import limpet
from bench.fake import Fake, fake, folder
from bench.home import assistant, say, session
from bench.report import Figure, Report

FULL, TINY, INSTALLED = 14.0, 6.0, 60.0
GREETING = "Hello, who are you?"


def measure(*, quick: bool) -> Report:
    """The same whether quick or not: nothing here takes long."""
    figures: list[Figure] = []
    with fake() as server:
        for name, goal, conversation, window in (
            ("full, conversation", FULL, True, 0),
            ("full, one-shot", FULL, False, 0),
            ("tiny, conversation", TINY, True, 8_000),
            ("tiny, one-shot", TINY, False, 8_000),
        ):
            body = asyncio.run(_first_request(server, conversation=conversation, window=window))
            figures += _request_figures(f"first request, {name}", body, goal)
    total = 0.0
    for name, size in sorted(installed("limpet").items(), key=lambda item: -item[1]):
        total += size
        figures.append(Figure(f"installed {name}", "size", size / 1e6, "MB"))
    figures.append(Figure("installed core", "size", total / 1e6, "MB", INSTALLED))
    return Report(
        "Sizes", figures, ["a conversation is told BOOTSTRAP.md, a one-shot run is not; without compiled caches"]
    )


async def _first_request(server: Fake, *, conversation: bool, window: int) -> bytes:
    more = {"LIMPET_TOOLS__BROWSER__ENABLED": "false"}  # an extra, there only where a Chromium is
    more |= {"LIMPET_PROVIDERS__OPENAI__WINDOW": str(window)} if window else {}
    with folder() as home:
        async with assistant(home, server, conversation=conversation, **more) as services:
            await say(session(services, "main"), GREETING)
    return server.body()


def _request_figures(name: str, body: bytes, goal: float) -> list[Figure]:
    fields = msgspec.json.decode(body, type=dict[str, Raw])
    messages = msgspec.json.decode(fields["messages"], type=list[Raw])
    return [
        Figure(name, "body", len(body) / 1e3, "kB", goal),
        Figure(name, "prompt", len(messages[0]) / 1e3, "kB"),
        Figure(name, "tools", len(fields["tools"]) / 1e3, "kB"),
        Figure(name, "message", len(messages[1]) / 1e3, "kB"),
    ]


def installed(name: str) -> dict[str, int]:
    """Bytes of a distribution and of all that it requires, extras left out, by name."""
    from packaging.requirements import Requirement

    found: dict[str, int] = {}
    waiting = [name]
    while waiting:
        current = distribution(waiting.pop())
        if current.name in found:
            continue
        found[current.name] = sum(path.stat().st_size for path in set(_files(current)) if path.is_file())
        for line in current.requires or ():
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                waiting.append(needed.name)
    return found


def _files(current: Distribution) -> Iterator[Path]:
    listed = [Path(str(file.locate())).resolve() for file in current.files or ()]
    if current.name == "limpet":  # may be installed as a link to its source
        listed += [path.resolve() for path in Path(limpet.__file__).parent.rglob("*")]
    return (path for path in listed if path.suffix != ".pyc")
