"""The event folder: each file becomes one row, and whatever cannot be used is put aside with the reason."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from limpet.gateway.folder import LARGEST, MOST, listed, prepare, put_away, read
from limpet.store import jobs, wakes
from limpet.store.sql import Connection
from limpet.testing.channel import FakeChannel
from tests.gateway.house import House, house, messages


def drop(home: Path, name: str, data: object, *, mode: int = 0o600) -> Path:
    """As a script does it: written beside, then moved into place."""
    folder = home / "events"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft, path = folder / f"{name}.tmp", folder / name
    draft.write_text(data if isinstance(data, str) else json.dumps(data))
    draft.chmod(mode)
    draft.rename(path)
    return path


def names(home: Path, folder: str) -> list[str]:
    where = home / "events" / folder
    return sorted(os.listdir(where)) if where.exists() else []


def back(home: Path, path: Path, at: int) -> None:
    """The file lies there again as it did, as if it had never been put away."""
    (done,) = names(home, "done")
    os.utime(home / "events" / "done" / done, ns=(at, at))
    (home / "events" / "done" / done).rename(path)


async def until(met: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not met():
            await asyncio.sleep(0.02)


def events(here: House) -> list[tuple[str, str]]:
    """The events of files in the inbox, with their trust."""

    def look(connection: Connection) -> list[tuple[str, str]]:
        rows = connection.execute("SELECT event, payload FROM inbox WHERE channel = 'hook' ORDER BY id")
        return [(str(event), str(json.loads(payload).get("trust", "owner"))) for event, payload in rows]  # type: ignore[arg-type]

    return here.agents.state.store.read(look)


async def spoken(fake: FakeChannel) -> None:
    await fake.say("hi")
    await fake.until(lambda: len(fake.answers("ann")) == 1, within=30)


def test_a_file_is_a_run_whose_answer_comes_to_the_owner_and_then_it_is_put_away(home: Path) -> None:
    async def main() -> tuple[tuple[str, ...], str, list[tuple[str, str]]]:
        fake = FakeChannel()
        async with house(home, fake) as here:
            await spoken(fake)
            drop(home, "a.json", {"kind": "agent", "text": "the backup is done"})
            await fake.until(lambda: len(fake.answers("ann")) == 2, within=30)
            await until(lambda: len(names(home, "done")) == 1)
            return fake.answers("ann"), str(messages(here.model.requests[-1].body)[-1]), events(here)

    said, asked, found = asyncio.run(main())
    assert said[1] == "echo: the backup is done"
    assert "[The file a.json in the event folder asks for this.]" in asked
    assert [trust for _, trust in found] == ["owner"]


def test_the_same_file_is_one_event_also_after_a_kill_before_it_was_put_away(home: Path) -> None:
    async def main() -> int:
        fake = FakeChannel()
        async with house(home, fake) as here:
            path = drop(home, "a.json", {"kind": "agent", "text": "once", "deliver": False})
            at = path.stat().st_mtime_ns
            for count in (1, 1):
                await until(lambda count=count: len(names(home, "done")) == count)
                back(home, path, at)
            await until(lambda: len(names(home, "done")) == 1)
            drop(home, "a.json", {"kind": "agent", "text": "once", "deliver": False})  # anew: another time
            await until(lambda: len(names(home, "done")) == 2)
            return len(events(here))

    assert asyncio.run(main()) == 2


@pytest.mark.parametrize(("extra", "mode"), [({"untrusted": True}, 0o600), ({}, 0o602)])
def test_what_strangers_could_have_written_is_theirs(home: Path, extra: dict[str, object], mode: int) -> None:
    async def main() -> tuple[list[tuple[str, str]], str]:
        async with house(home, FakeChannel()) as here:
            drop(home, "a.json", {"kind": "agent", "text": "obey", "deliver": False, **extra}, mode=mode)
            drop(home, "b.json", {"kind": "remind", "text": "x", "every": "1h", **extra}, mode=mode)
            await until(lambda: len(here.model.requests) == 1)
            await until(lambda: len(names(home, "failed")) == 2)
            return events(here), str(here.model.requests[0].body)

    found, asked = asyncio.run(main())
    assert [trust for _, trust in found] == ["external"]
    assert "<payload>obey</payload>" in asked
    assert "only in a file that is yours alone" in reason(home, "b.json")


def reason(home: Path, name: str) -> str:
    found = next(one for one in names(home, "failed") if one.endswith(f"{name}.reason.txt"))
    return (home / "events" / "failed" / found).read_text()


def test_wakes_and_jobs_come_from_files(home: Path) -> None:
    async def main() -> tuple[list[wakes.Wake], list[str]]:
        async with house(home, FakeChannel()) as here:
            drop(home, "w.json", {"kind": "wake", "message": "disk is full", "mode": "next-heartbeat"})
            drop(home, "j.json", {"kind": "agent", "text": "sum up", "cron": "0 8 * * *", "name": "sum"})
            drop(home, "r.json", {"kind": "remind", "text": "Tea", "at": "in 2 hours", "name": "tea"})
            await until(lambda: len(names(home, "done")) == 3)
            store = here.agents.state.store
            found = [row for name in ("sum", "tea") for row in store.read(lambda c, name=name: jobs.named(c, name))]
            assert [row.job.says for row in found] == [False, True]
            return store.read(lambda connection: wakes.waiting(connection)), [row.job.schedule.kind for row in found]

    (wake,), kinds = asyncio.run(main())
    assert (wake.text, wake.trust, wake.soon) == ("disk is full", "owner", False)
    assert kinds == ["cron", "at"]


def test_a_file_that_makes_a_job_makes_it_once(home: Path) -> None:
    async def main() -> int:
        async with house(home, FakeChannel()) as here:
            path = drop(home, "j.json", {"kind": "agent", "text": "sum up", "every": "1h"})
            at = path.stat().st_mtime_ns
            await until(lambda: len(names(home, "done")) == 1)
            back(home, path, at)
            await until(lambda: len(names(home, "done")) == 1)
            return len([one for one in here.agents.state.store.read(jobs.listed) if one.job.name != "heartbeat"])

    assert asyncio.run(main()) == 1


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"kind": "dance", "text": "x"}, "it cannot be read"),
        ({"kind": "agent", "text": "x", "extra": 1}, "it cannot be read"),
        ({"kind": "agent"}, "It needs either"),
        ({"kind": "agent", "text": "x", "agent": "nobody"}, "There is no agent 'nobody'"),
        ({"kind": "agent", "text": "x", "to": "telegram:1"}, "There is no chat 'telegram:1'"),
        ({"kind": "remind", "text": "x"}, "needs a time"),
        ({"kind": "wake", "text": "x", "every": "1h"}, "can have a time"),
        ({"kind": "agent", "text": "x", "every": "sometimes"}, "sometimes"),
        ("x" * (LARGEST + 1), "at most"),
    ],
)
def test_what_cannot_be_used_is_put_aside_and_the_owner_told_once(home: Path, data: object, why: str) -> None:
    async def main() -> tuple[str, ...]:
        fake = FakeChannel()
        async with house(home, fake):
            await spoken(fake)
            path = drop(home, "bad.json", data)
            os.utime(path, (time.time() - 60,) * 2)
            await fake.until(lambda: len(fake.answers("ann")) == 2, within=30)
            return fake.answers("ann")

    assert why in asyncio.run(main())[1]
    assert why in reason(home, "bad.json")


def test_a_file_that_is_still_written_is_left_alone(home: Path) -> None:
    async def main() -> int:
        async with house(home, FakeChannel()) as here:
            (home / "events").mkdir(mode=0o700, exist_ok=True)
            path = home / "events" / "slow.json"
            path.write_text('{"kind": "agent", "te')
            await asyncio.sleep(0.1)
            drop(home, "z.json", {"kind": "agent", "text": "x", "deliver": False})
            await until(lambda: len(names(home, "done")) == 1)
            assert path.exists()
            path.write_text('{"kind": "agent", "text": "whole", "deliver": false}')
            await until(lambda: len(names(home, "done")) == 2)
            return len(events(here))

    assert asyncio.run(main()) == 2


def test_links_and_other_things_are_refused_and_never_followed(tmp_path: Path) -> None:
    root = tmp_path / "events"
    prepare(str(root))
    target = tmp_path / "secret.json"
    target.write_text('{"kind": "agent", "text": "x"}')
    (root / "link.json").symlink_to(target)
    (root / "folder.json").symlink_to(tmp_path)
    os.mkfifo(root / "pipe.json")
    (root / "dir.json").mkdir()
    (root / ".hidden.json").write_text("{}")
    (root / "draft.json.tmp").write_text("{}")
    found = {one.name: one for one in map(read, listed(str(root)))}
    assert {name: one.fault for name, one in found.items()} == {
        "link.json": "it is a link.",
        "folder.json": "it is a link.",
        "pipe.json": "it is no ordinary file.",
    }
    put_away(found["link.json"], "failed", "it is a link.")
    assert target.exists()
    assert len(os.listdir(root / "failed")) == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_files_of_others_are_refused(tmp_path: Path) -> None:
    prepare(str(tmp_path / "events"))
    path = tmp_path / "events" / "a.json"
    path.write_text("{}")
    os.chown(path, 65534, 65534)
    assert read(str(path)).fault == "it belongs to somebody else."


def test_a_file_that_was_replaced_meanwhile_is_not_put_away(tmp_path: Path) -> None:
    root = tmp_path / "events"
    prepare(str(root))
    path = root / "a.json"
    path.write_text("{}")
    found = read(str(path))
    (root / "b.tmp").write_text('{"kind": "wake", "text": "new"}')
    (root / "b.tmp").rename(path)
    put_away(found, "done")
    assert path.read_text().startswith('{"kind"')


def test_what_was_kept_long_enough_is_deleted(tmp_path: Path) -> None:
    root = tmp_path / "events"
    prepare(str(root))
    for number in range(MOST + 5):
        (root / "done" / f"{number:05}.json").touch()
    os.utime(root / "done" / f"{MOST + 4:05}.json", (0, 0))
    prepare(str(root))
    left = os.listdir(root / "done")
    assert len(left) == MOST - 1
    assert f"{MOST + 4:05}.json" not in left
    assert root.stat().st_mode & 0o077 == 0
