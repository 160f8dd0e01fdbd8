from __future__ import annotations

import asyncio
from pathlib import Path

from limpet.config.secrets import SecretRedactor
from limpet.store.driver import Store
from limpet.store.learned import StoredLessons, forget, lessons
from limpet.testing.clock import FakeClock
from limpet.types.ports import Known
from limpet.types.profile import Profile

KEY = "sk-0123456789abcdef"
HERE = Profile(provider="p", wire="openai_chat", model="m", base_url="http://here/v1")
THERE = Profile(provider="p", wire="openai_chat", model="m", base_url="http://there/v1")


def opened(folder: Path, name: str) -> tuple[Store, StoredLessons]:
    store = Store.open(str(folder / "limpet.db"), process=name)
    return store, StoredLessons(store, FakeClock(), SecretRedactor({"K": KEY}))


def test_lessons_are_kept_by_address_over_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        store, learned = opened(tmp_path, "one")
        await learned.refuses(HERE, "temperature", reason="no")
        await learned.refuses(HERE, "temperature", reason=f"no, {KEY}")
        await learned.has_window(HERE, 9_000, reason="too long")
        await learned.has_window(HERE, 4_096, reason="too long")
        await store.close()
        store, learned = opened(tmp_path, "two")
        assert learned.known(HERE) == Known(("temperature",), 4_096)
        assert learned.known(THERE) == Known()
        assert [lesson.reason for lesson in store.read(lessons)] == ["too long", "no, [secret:K]"]
        await store.close()

    asyncio.run(main())


def test_what_is_forgotten_is_unknown_at_every_address(tmp_path: Path) -> None:
    async def main() -> None:
        store, learned = opened(tmp_path, "one")
        for profile in (HERE, THERE):
            await learned.refuses(profile, "store", reason="no")
        assert await store.write(lambda connection: forget(connection, "p", "other")) == 0
        assert await store.write(lambda connection: forget(connection, "p", "m")) == 2
        assert learned.known(HERE) == Known()
        await store.close()

    asyncio.run(main())
