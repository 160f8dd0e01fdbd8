"""Settings of a purpose reach the request."""

from __future__ import annotations

import asyncio
from pathlib import Path

from limpet.assistant.conversation import Conversation
from limpet.config.schema import ChatPurpose, Purpose, PurposeSettings
from limpet.testing.scripted import ScriptedModel
from limpet.types.message import Sampling
from tests.assistant.room import KEY, Ledger, home, said


def test_the_chat_is_asked_as_its_settings_say(tmp_path: Path) -> None:
    async def main() -> None:
        model = ScriptedModel(["one", "two"])
        purposes = PurposeSettings(chat=ChatPurpose(temperature=0.1, tool_choice="none", thinking="low"))
        async with home(tmp_path, model, tools=Ledger(tmp_path).tools(), purposes=purposes) as (services, _):
            talk = Conversation(services, KEY)
            await talk.send(said("hi"))
            await talk.send(said("/think high"))
            await talk.send(said("again"))
        assert model.requests[0].sampling == Sampling(temperature=0.1, thinking="low")
        assert model.requests[1].sampling.thinking == "high"
        assert {request.tool_choice for request in model.requests} == {"none"}

    asyncio.run(main())


def test_the_model_for_a_purpose_comes_with_its_settings(tmp_path: Path) -> None:
    async def main() -> None:
        purposes = PurposeSettings(summary=Purpose(temperature=0.0, tool_choice="none"))
        async with home(tmp_path, ScriptedModel([]), purposes=purposes) as (services, _):
            found = await services.model_for("summary", chat="scripted/scripted-1")
            assert (found.sampling.temperature, found.tool_choice) == (0.0, "none")

    asyncio.run(main())
