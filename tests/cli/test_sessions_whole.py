"""Conversations that were forked, moved in and erased go on: the real program against a strict service."""

from __future__ import annotations

import asyncio
from pathlib import Path

from limpet.testing.fakes.openai import FakeOpenAI
from limpet.testing.fakes.script import Call, Reply, Seen
from tests.cli.program import at, limpet


def script(seen: Seen) -> Reply:
    """Looks around once, then answers."""
    text = seen.raw.decode()
    if "look around" in text and '"role":"tool"' not in text.replace(" ", ""):
        return Reply(calls=(Call("list_dir", '{"path": "."}'),))
    return Reply(text=("fine",))


def test_a_conversation_goes_on_after_fork_rewind_and_erasure(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI(script) as server:
            there = at(server)

            async def run(*arguments: str) -> str:
                ended = await limpet(tmp_path, *arguments, **there)
                assert ended.code == 0, ended.err
                return ended.out

            await run("agent", "-m", "look around, quagga")
            await run("sessions", "fork", "main", "--name", "copy")
            await run("agent", "--session", "copy", "-m", "and now?")
            origin, fork = server.requests[1].body, server.requests[-1].body
            assert origin is not None
            assert fork is not None
            assert fork["messages"][: len(origin["messages"])] == origin["messages"]  # pyright: ignore
            await run("agent", "--session", "copy", "-m", "/rewind 1")
            await run("sessions", "erase", "main", "--yes")
            for session in ("main", "copy"):
                assert "fine" in await run("agent", "--session", session, "-m", "go on")
                assert "quagga" not in server.requests[-1].raw.decode()
            assert server.refusals == []

    asyncio.run(main())
