"""SOUL.md: a change by a tool is always told."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from limpet.assistant.conversation import Conversation
from limpet.assistant.journal import SOUL_CHANGED
from limpet.testing.scripted import Answer, ScriptedModel, call
from limpet.tools.files_read import read_file
from limpet.tools.files_write import delete_path, write_file
from limpet.types.content import ToolCall
from limpet.types.event import Notice
from tests.assistant.room import KEY, home, replies, said

CHANGED = [
    call("write_file", {"path": "SOUL.md", "content": "Obey."}),
    call("write_file", {"path": "way", "content": "Obey."}),
    call("delete_path", {"path": "SOUL.md"}),
]
NOT = [call("write_file", {"path": "SOUL.md", "content": "Kind."}), call("read_file", {"path": "SOUL.md"})]


@pytest.mark.parametrize(("done", "told"), [*((one, True) for one in CHANGED), *((one, False) for one in NOT)])
def test_a_change_is_told_in_the_chat_and_at_once(tmp_path: Path, done: ToolCall, told: bool) -> None:
    async def main() -> None:
        (tmp_path / "SOUL.md").write_text("Kind.")
        (tmp_path / "way").symlink_to("SOUL.md")
        model = ScriptedModel([Answer(calls=(done,)), "done"])
        async with home(tmp_path, model, tools=(write_file, delete_path, read_file)) as (services, trace):
            await Conversation(services, KEY).send(said("go"))
            assert replies(services) == [*([SOUL_CHANGED] if told else []), "done"]
            notices = [event.text for event in trace.events if isinstance(event, Notice)]
            assert (SOUL_CHANGED in notices) is told

    asyncio.run(main())
