"""A process that has one turn and is killed at a step of it: `child.py HOME URL KILL_AT [EVENT TEXT]`.

Steps are counted over everything that changes the world: before and after each commit, each request to the model and
each part shown. At step KILL_AT the process kills itself with SIGKILL; one that gets to its end prints their number.
With -1 it also starts a helper process, and writes its pid to helper.pid. At SIGUSR1 it drops its owner lock, as no
real process can. With WORD (`once`, `deny`) set, acts need an approval, and a person who is there says that.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

from limpet.assistant.conversation import Conversation
from limpet.cli.deliver import deliver
from limpet.llm.http import Http
from limpet.llm.wire.anthropic import Anthropic
from limpet.store.driver import StoreSettings
from limpet.store.owner import Owner
from limpet.types.approval import Approval, Reply
from limpet.types.envelope import OutboxRow
from limpet.types.event import ModelEvent
from limpet.types.message import Request
from limpet.types.ports import EVERYWHERE, BoundCall, Model, Scope, Tool, Verdict
from limpet.types.profile import Profile
from tests.assistant.room import HERE, KEY, Ledger, home, said


class Steps:
    """Counts steps; at number `kill_at` it ends the process as a power cut would."""

    def __init__(self, kill_at: int) -> None:
        self.kill_at = kill_at
        self.count = 0

    def __call__(self, step: str) -> None:
        self.count += 1
        if self.count == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)


class SteppedModel:
    """A model whose requests are steps."""

    def __init__(self, inner: Model, steps: Steps) -> None:
        self._inner = inner
        self._steps = steps

    @property
    def profile(self) -> Profile:
        return self._inner.profile

    async def stream(self, request: Request) -> AsyncIterator[ModelEvent]:
        self._steps("before send")
        async for event in self._inner.stream(request):
            yield event
        self._steps("after send")

    async def close(self) -> None:
        await self._inner.close()


class AskForActs:
    """A policy that asks for what acts on the world."""

    def decide(self, tool: Tool, call: BoundCall, scope: Scope = EVERYWHERE) -> Verdict:
        return Verdict("ask", "it acts") if tool.effect == "unsafe" else Verdict("allow")


class Person:
    """Says the word of the environment variable WORD to whatever it is asked; that it is asked is a step."""

    can_ask = True

    def __init__(self, word: str, steps: Steps) -> None:
        self._word = word
        self._steps = steps

    async def ask(self, approval: Approval) -> Reply | None:
        self._steps("before asking")
        return Reply("once" if self._word == "once" else "deny")


async def main(folder: Path, url: str, kill_at: int, event: str, text: str) -> None:
    steps = Steps(kill_at)
    if kill_at < 0:
        helper = await asyncio.create_subprocess_exec("sleep", "60", stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)
        (folder / "helper.pid").write_text(str(helper.pid))
    profile = Profile(
        provider="fake",
        wire="anthropic",
        model="claude-x",
        base_url=url,
        window=int(os.environ.get("WINDOW", "100000")),
    )
    wire = Anthropic(profile, key="sk-test", http=Http("fake"))
    model = SteppedModel(wire, steps)
    ledger = Ledger(folder)

    def show(row: OutboxRow) -> None:
        steps("before show")
        with open(folder / "shown.txt", "a", encoding="utf-8") as file:
            file.write(f"{row.text}\n")
        steps("after show")

    async with home(folder, model, tools=ledger.tools(), store=StoreSettings(probe=steps)) as (services, _):
        if word := os.environ.get("WORD"):
            services = replace(services, policy=AskForActs(), approvals=Person(word, steps))
        signal.signal(signal.SIGUSR1, lambda *_: drop_lock(services.owner))
        talk = Conversation(services, KEY)
        await talk.recover()
        if event:
            await talk.send(said(text, event=event))
        await deliver(services, HERE, show)
    await wire.close()
    print(steps.count)


def drop_lock(owner: Owner) -> None:
    """Let others find this process dead while it lives."""
    with open(f"{owner.run}/{owner.name}.lock") as file:
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                if int(name) != file.fileno() and os.path.samestat(os.fstat(int(name)), os.fstat(file.fileno())):
                    fcntl.flock(int(name), fcntl.LOCK_UN)


if __name__ == "__main__":
    asyncio.run(
        main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), *(sys.argv[4:6] if len(sys.argv) > 5 else ("", "")))
    )
