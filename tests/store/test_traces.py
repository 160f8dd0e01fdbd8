from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from msgspec import structs

from limpet.config.secrets import SecretRedactor
from limpet.store import traces
from limpet.store.driver import Store
from limpet.store.traces import MOST, StoredTraces
from limpet.testing.clock import FakeClock
from limpet.types.trace import ANSWER_KEPT, MARGIN, Extract, Trace

KEY = "sk-0123456789abcdef"
TRACE = Trace(session="s1", provider="p", model="m", reason="UpstreamError: oops", status=500)


def kept(folder: Path, given: Iterable[Trace]) -> list[Trace]:
    """What is left of `given`, the newest first."""

    async def main() -> list[Trace]:
        store = Store.open(str(folder / "limpet.db"), process="one")
        port = StoredTraces(store, FakeClock(), SecretRedactor({"K": KEY}))
        for trace in given:
            await port.keep(trace)
        numbers = [failure.number for failure in store.read(traces.recent)]
        found = [store.read(lambda connection, number=number: traces.load(connection, number)) for number in numbers]
        await store.close()
        return [trace for trace in found if trace is not None]

    return asyncio.run(main())


def test_no_known_secret_is_written(tmp_path: Path) -> None:
    said = f"before {KEY} after"
    dirty = structs.replace(
        TRACE, reason=said, url=f"http://x/?q={KEY}", headers={"X-Custom": KEY}, answer_headers={"X": KEY},
        request=Extract(said), answer=Extract(said, 3, said),
    )  # fmt: skip
    (found,) = kept(tmp_path, [dirty])
    assert KEY not in repr(found)
    assert repr(found).count("[secret:K]") == 7
    assert KEY.encode() not in (tmp_path / "limpet.db-wal").read_bytes()


def test_a_secret_cut_at_the_edge_is_cut_away(tmp_path: Path) -> None:
    most = ANSWER_KEPT // 2
    head, tail = "x" * (most + MARGIN - 5) + KEY[:5], KEY[-5:] + "y" * (most + MARGIN - 5)
    (found,) = kept(tmp_path, [structs.replace(TRACE, answer=Extract(head, 9, tail))])
    assert (found.answer.head, found.answer.tail) == ("x" * most, "y" * most)


def test_the_newest_are_kept(tmp_path: Path) -> None:
    found = kept(tmp_path, [structs.replace(TRACE, model=str(number)) for number in range(MOST + 3)])
    assert [trace.model for trace in found] == [str(number) for number in range(MOST + 2, 2, -1)]


def test_forgetting_drops_all(tmp_path: Path) -> None:
    kept(tmp_path, [TRACE, TRACE])

    async def main() -> None:
        store = Store.open(str(tmp_path / "limpet.db"), process="two")
        assert await store.write(traces.clear) == 2
        assert store.read(traces.recent) == []
        assert store.read(lambda connection: traces.load(connection, 1)) is None
        await store.close()

    asyncio.run(main())
