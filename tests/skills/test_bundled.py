"""The skills that come with Limpet: each is whole, told, read and gated."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from limpet.prompt.skill_index import index
from limpet.skills import fronts
from limpet.skills.discovery import BUNDLED, Place, discover
from limpet.skills.gates import Situation
from limpet.testing.scripted import Answer, ScriptedModel, call
from limpet.tools.beside import reading_beside
from limpet.tools.files_read import read_file
from tests.assistant.room import home
from tests.cases.stage import Stage
from tests.skills.folders import find, shelf

NAMES = ("cron", "github", "memory", "skill-creator", "summarize", "tmux", "weather")
ALL = Situation(has_tool=lambda name: True, which=lambda name: name, platform="linux")
NOTHING = Situation(which=lambda name: None, platform="linux")


def test_they_are_the_seven_without_a_fault(tmp_path: Path) -> None:
    found = find(tmp_path, bundled=True)
    assert tuple(one.name for one in found.skills) == NAMES == tuple(sorted(os.listdir(BUNDLED)))
    assert found.faults == ()
    assert all(len(one.body) < 3_000 and one.description for one in found.skills)


def test_they_are_offered_only_where_they_can_be_used(tmp_path: Path) -> None:
    assert tuple(one.name for one in shelf(tmp_path, here=ALL, bundled=True).offered) == NAMES
    there = [one.name for one in shelf(tmp_path, here=NOTHING, bundled=True).offered]
    assert there == ["memory", "skill-creator", "summarize"]


def test_their_needs_wait_for_a_grant(tmp_path: Path) -> None:
    needy = [one for one in shelf(tmp_path, here=ALL, bundled=True).offered if one.ungranted]
    assert [(one.name, one.front.needs.told()) for one in needy] == [
        ("github", "hosts api.github.com, github.com; secrets GH_TOKEN; programs gh"),
        ("tmux", "commands on the host; programs tmux"),
    ]


@pytest.mark.parametrize("name", NAMES)
def test_the_index_shows_it_and_the_model_reads_it(tmp_path: Path, name: str) -> None:
    one = shelf(tmp_path, here=ALL, bundled=True)
    skill = next(skill for skill in one.offered if skill.name == name)
    assert f'<skill name="{name}"' in index(one.offered)
    assert skill.location.replace(f"/{name}/", "/NAME/") in index(one.offered)

    async def main() -> list[str]:
        model = ScriptedModel([Answer(calls=(call("read_file", {"path": skill.location}),)), "done"])
        tools = (reading_beside(read_file, one.folders),)
        (tmp_path / "h").mkdir()
        async with home(tmp_path / "h", model, tools=tools) as (services, trace):
            stage = Stage(services, trace)
            await stage.say("go")
            return stage.results()

    (text,) = asyncio.run(main())
    assert text.strip().endswith(skill.instructions[-200:].strip())


def test_their_index_is_small(tmp_path: Path) -> None:
    text = index(shelf(tmp_path, here=ALL, bundled=True).offered).replace(BUNDLED, "/x")
    assert len(text) < 2_500
    assert json.dumps(text)


def test_what_they_say_of_themselves_is_shipped_as_it_was_read() -> None:
    assert fronts.SHIPPED.read_bytes() == fronts.shipped(), "run python -m limpet.skills.fronts"


def test_a_new_home_reads_no_yaml_for_them(tmp_path: Path) -> None:
    found = discover([Place("bundled", BUNDLED)], fronts.Fronts(tmp_path / "read.json"), workspace=str(tmp_path))
    assert len(found.skills) > 5
    assert list(tmp_path.iterdir()) == []
