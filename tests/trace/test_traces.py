"""What watchers see of a turn, held against recorded traces. `LIMPET_RECORD=1` records them anew: read the diff."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from limpet.agent.limits import Limits
from limpet.assistant.conversation import Conversation
from limpet.errors import CredentialError
from limpet.testing.scripted import Answer, ScriptedModel, Step, call
from tests.assistant.room import KEY, Ledger, home, said

HERE = Path(__file__).parent

SCRIPTS: dict[str, tuple[Sequence[Step], Limits]] = {
    "answer": (["Hello there."], Limits()),
    "thinking": ([Answer(text="42", thinking="six times seven")], Limits()),
    "tools": (
        [Answer(text="Let me see.", calls=(call("look", {"word": "a"}), call("nothing"))), "It is a."],
        Limits(),
    ),
    "steps": ([*[Answer(calls=(call("look", {"word": str(n)}),)) for n in range(2)], "So far."], Limits(steps=2)),
    "repeats": ([*[Answer(calls=(call("look", {"word": "a"}),)) for _ in range(5)], "I give up."], Limits()),
    "empty": (["", "", "There."], Limits()),
    "refused": ([CredentialError("Incorrect API key", provider="openai", status=401)], Limits()),
    "cut": ([Answer(text="half of", stop="length")], Limits()),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_turn_looks_as_recorded(tmp_path: Path, name: str) -> None:
    script, limits = SCRIPTS[name]

    async def main() -> str:
        tools = Ledger(tmp_path).tools()
        async with home(tmp_path, ScriptedModel(script), tools=tools, limits=limits) as (services, trace):
            await Conversation(services, KEY).send(said("go"))
            return trace.text + "\n"

    seen = asyncio.run(main())
    record = HERE / f"{name}.txt"
    if os.environ.get("LIMPET_RECORD"):
        record.write_text(seen, encoding="utf-8")
    assert seen == record.read_text(encoding="utf-8")
