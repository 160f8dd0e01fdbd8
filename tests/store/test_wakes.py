import asyncio
from pathlib import Path

from limpet.store import wakes
from limpet.store.driver import Store
from limpet.store.sql import Connection


def _add(connection: Connection, event: str, *, agent: str = "main", now: int = 1) -> int:
    return wakes.add(
        connection, event, agent=agent, source="test", text=f"about {event}", trust="external", soon=True, now=now
    )


def _with_store(folder: Path, work):
    async def main():
        store = Store.open(str(folder / "limpet.db"), process="test")
        try:
            return await store.write(work)
        finally:
            await store.close()

    return asyncio.run(main())


def test_an_event_is_stored_once_and_keeps_its_id(tmp_path):
    def work(connection: Connection):
        first, other, again = _add(connection, "a"), _add(connection, "b"), _add(connection, "a", now=9)
        assert (first == again, first == other) == (True, False)
        assert [(one.text, one.at, one.soon) for one in wakes.waiting(connection)] == [
            ("about a", 1, True),
            ("about b", 1, True),
        ]

    _with_store(tmp_path, work)


def test_what_was_taken_waits_no_more_and_does_not_come_again(tmp_path):
    def work(connection: Connection):
        first = _add(connection, "a")
        assert (wakes.take(connection, [first], now=5), wakes.take(connection, [first], now=6)) == (1, 0)
        assert (_add(connection, "a"), wakes.waiting(connection)) == (first, [])

    _with_store(tmp_path, work)


def test_each_agent_has_its_own(tmp_path):
    def work(connection: Connection):
        _add(connection, "a"), _add(connection, "b", agent="other")
        assert [one.agent for one in wakes.waiting(connection, agent="other")] == ["other"]

    _with_store(tmp_path, work)


def test_only_what_was_taken_long_ago_is_cleared(tmp_path):
    def work(connection: Connection):
        old, new, _ = (_add(connection, one) for one in "abc")
        wakes.take(connection, [old], now=5), wakes.take(connection, [new], now=50)
        assert wakes.clear(connection, before=10) == 1
        assert [one.text for one in wakes.waiting(connection)] == ["about c"]

    _with_store(tmp_path, work)
