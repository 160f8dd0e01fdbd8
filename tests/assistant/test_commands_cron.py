"""`/cron add`: what is written becomes what is wished."""

from __future__ import annotations

import pytest

from limpet.assistant.commands_cron import wish_of
from limpet.errors import InputError
from limpet.types.job import JobWish


@pytest.mark.parametrize(
    ("said", "wish"),
    [
        ("Tea is ready --says --at in 5 minutes", JobWish("Tea is ready", says=True, when="in 5 minutes")),
        ("--says Tea is ready --at tomorrow 7:30", JobWish("Tea is ready", says=True, when="tomorrow 7:30")),
        ('"Sum up the news" --cron "30 8 * * 1-5"', JobWish("Sum up the news", when="cron 30 8 * * 1-5")),
        ("don't forget \N{EM DASH}every 2h", JobWish("don't forget", when="every 2h")),
        (
            "look --every=2h --zone Asia/Tokyo --name l --to news",
            JobWish("look", when="every 2h", zone="Asia/Tokyo", name="l", to="news"),
        ),
        (
            "look --at 7:30 --allow exec --allow web_* --main --model a/b",
            JobWish("look", when="7:30", grants=("exec", "web_*"), main=True, model="a/b"),
        ),
        ("run git commit --amend --every 1d", JobWish("run git commit --amend", when="every 1d")),
    ],
)
def test_options_go_on_to_the_next_one(said: str, wish: JobWish) -> None:
    assert wish_of(said) == wish


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ("tea", "Say when"),
        ("tea --at 7:30 --every 2h", "Say when"),
        ("tea --at 7:30 --dayly", "no option --dayly"),
    ],
)
def test_what_is_not_clear_is_refused(said: str, wrong: str) -> None:
    with pytest.raises(InputError, match=wrong):
        wish_of(said)
