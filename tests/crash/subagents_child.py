"""A process whose conversation spawns a helper, killed at a step: `subagents_child.py HOME URL KILL_AT EVENT TEXT`."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

from limpet.assistant.services import HelperRules
from limpet.assistant.subagents import Spawning
from limpet.cli.talk import Talk
from limpet.llm.http import Http
from limpet.llm.wire.anthropic import Anthropic
from limpet.store.driver import StoreSettings
from limpet.tools.spawn import make_spawn
from limpet.types.envelope import OutboxRow
from limpet.types.profile import Profile
from tests.assistant.room import home, said
from tests.crash.child import SteppedModel, Steps


async def main(folder: Path, url: str, kill_at: int, event: str, text: str) -> None:
    steps = Steps(kill_at)
    profile = Profile(provider="fake", wire="anthropic", model="claude-x", base_url=url, window=100_000)
    wire = Anthropic(profile, key="sk-test", http=Http("fake"))

    def show(row: OutboxRow) -> None:
        with open(folder / "shown.txt", "a", encoding="utf-8") as file:
            file.write(f"{row.text}\n")

    async with home(folder, SteppedModel(wire, steps), store=StoreSettings(probe=steps)) as (plain, _):
        spawning = Spawning(plain.store, plain.models, plain.redactor, rules=HelperRules(), model="", agent="main")
        services = replace(plain, tools=(make_spawn(spawning),))
        talk = Talk(services, "main", show)
        async with talk.helped():
            await talk.catch_up()
            await talk.conversation.send(said(text, event=event))
            await talk.deliver()
            await talk.finish()
    await wire.close()
    print(steps.count)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5]))
