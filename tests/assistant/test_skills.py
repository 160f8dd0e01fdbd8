"""Skills as slash commands."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from limpet.assistant.conversation import Conversation
from limpet.testing.scripted import ScriptedModel
from tests.assistant.room import KEY, home, replies, said
from tests.skills.folders import shelf, skill

HIDDEN = "---\nname: hidden\ndescription: x\nuser-invocable: false\n---\nSecretly."


def told(tmp_path: Path, *texts: str) -> tuple[list[str], list[str]]:
    """What was replied, and what the model was last told, to each of `texts`."""
    place = tmp_path / "workspace" / "skills"
    skill(place, "brew-tea", body="Boil {baseDir}/water.")
    skill(place, "status", body="Shadow.")
    skill(place, "hidden", HIDDEN)

    async def run() -> tuple[list[str], list[str]]:
        model = ScriptedModel(["done"] * len(texts))
        async with home(tmp_path / "h", model) as (services, _):
            talk = Conversation(replace(services, skills=shelf(tmp_path)), KEY)
            for number, text in enumerate(texts):
                await talk.send(said(text, event=f"e{number}"))
            return replies(services), [str(request.messages[-1]) for request in model.requests]

    (tmp_path / "h").mkdir()
    return asyncio.run(run())


def test_a_skill_is_called_by_skill_or_by_its_own_command(tmp_path: Path) -> None:
    answers, asked = told(tmp_path, "/skill brew-tea two cups", "/brew_tea", "/brew-tea with milk")
    assert answers == ["done"] * 3
    assert f"Boil {tmp_path}/workspace/skills/brew-tea/water." in asked[0]
    assert "two cups" in asked[0]
    assert "with milk" in asked[2]


def test_a_command_of_ours_is_never_shadowed(tmp_path: Path) -> None:
    answers, asked = told(tmp_path, "/status", "/hidden", "/skill hidden", "/skill")
    assert asked == []
    assert "Shadow" not in answers[0]
    assert "no command /hidden" in answers[1]
    assert "no skill hidden" in answers[2]
    assert answers[3] == "/skill brew-tea - About brew-tea.\n/skill status - About status."


def test_help_lists_them(tmp_path: Path) -> None:
    answers, _ = told(tmp_path, "/help")
    assert "/brew_tea [what to do] - About brew-tea." in answers[0]
    assert answers[0].count("/status") == 1
