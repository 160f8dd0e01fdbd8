"""A full and a failing disk: a clear error, nothing lost, and it goes on when there is room again."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from limpet.assistant.conversation import Conversation
from limpet.errors import StoreError, StoreFullError
from limpet.testing.scripted import Answer, ScriptedModel, call
from tests.assistant.room import KEY, Ledger, home, replies, said


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = (
        os.geteuid() == 0
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], capture_output=True, check=False
        ).returncode
    )
    if not mounted:
        pytest.skip("only root can mount a small file system here")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def fill_up(path: Path) -> None:
    """Write until there is no room left."""
    try:
        with open(path, "ab", buffering=0) as file:
            while True:
                file.write(b"x" * 4_096)
    except OSError:
        pass


def test_a_full_disk_is_said_and_nothing_is_lost(small_disk: Path) -> None:
    async def main() -> None:
        model = ScriptedModel(["one", "two"])
        async with home(small_disk, model) as (services, _):
            talk = Conversation(services, KEY)
            await talk.send(said("first"))
            fill = small_disk / "fill"
            fill_up(fill)
            with pytest.raises(StoreFullError, match="No space left"):
                await talk.send(said("hello " * 30_000, event="m2"))
            fill.unlink()
            await talk.send(said("second", event="m2"))
            assert replies(services) == ["one", "two"]
        async with home(small_disk, ScriptedModel(["three"])) as (services, _):
            await Conversation(services, KEY).send(said("third"))
            assert replies(services) == ["one", "two", "three"]

    asyncio.run(main())


def test_a_disk_that_fills_up_in_the_middle_of_a_turn_leaves_it_to_be_resumed(small_disk: Path, tmp_path: Path) -> None:
    async def main() -> None:
        ledger = Ledger(tmp_path)
        fill = small_disk / "fill"

        def filled(_: object) -> Answer:
            fill_up(fill)
            return Answer(calls=(call("act", {"word": "a" * 200_000}),))

        model = ScriptedModel([filled, Answer(calls=(call("act", {"word": "b"}),)), "done"])
        async with home(small_disk, model, tools=ledger.tools()) as (services, _):
            talk = Conversation(services, KEY)
            with pytest.raises(StoreError):
                await talk.send(said("go"))
            assert ledger.ran == []
            fill.unlink()
            await talk.recover()
            assert ledger.ran == ["b"]
            assert replies(services) == ["done"]

    asyncio.run(main())
