"""Remembering and forgetting: changes of a conversation's memory, each recorded so that it can be taken back."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from limpet.assistant.memory_scope import scope_of
from limpet.assistant.services import Services
from limpet.errors import InputError
from limpet.memory import changes
from limpet.memory.book import Book, checked, says
from limpet.memory.changes import Change, Hunk
from limpet.memory.entries import ID, Remembered, marked, named, normal, one_line
from limpet.memory.scope import MemoryScope
from limpet.session import erase
from limpet.store import audit
from limpet.store.sql import Connection
from limpet.types.envelope import Trust
from limpet.types.ids import new_id

Kind = Literal["lasting", "today"]
SOURCES: dict[Kind, str] = {"lasting": "said", "today": "noted"}
SHOWN = 80
"""Characters of an entry that a line for people shows."""


class Added(Struct, frozen=True):
    """What became of a text: its id, the file it stands in, and whether it is new there."""

    id: str
    file: str
    fresh: bool = True


class Forgotten(Struct, frozen=True):
    """What was forgotten: the entries, the files they stood in, and in how many entries of logs they were quoted."""

    entries: tuple[str, ...]
    files: tuple[str, ...]
    quoted: int


class Remembering:
    """The memory of the conversations under `key`, or of `scope`."""

    def __init__(self, services: Services, key: str, *, scope: MemoryScope | None = None) -> None:
        self.services = services
        self.scope = scope_of(key, services.memory.bound) if scope is None else scope
        self.book = Book(services.workspace, self.scope)

    async def add(self, text: str, kind: Kind = "lasting", *, trust: Trust = "owner", key: str = "") -> Added:
        """Remember a text, unless that is done; what strangers had a part in waits for the owner.

        `key` names the call for good. Raises `WorkspaceError`.
        """
        said = one_line(self.services.redactor.redact(checked(text)))
        now = self.services.clock.now()
        at = f"{self.services.memory.local(now):%Y-%m-%d %H:%M}"
        day = f"{at[:10]}.md"
        proper = self.scope.lasting[0] if kind == "lasting" else f"{self.scope.folder}/{day}"
        file = f"{self.scope.pending}/{day}" if trust == "external" else proper
        known = self.book.holds(said, (*(self.scope.lasting if kind == "lasting" else (proper,)), file))
        if known is not None:
            return Added(known.id, known.file, fresh=False)
        hunk = self.book.adding(file, (marked(said, at=at, source=SOURCES[kind], trust=trust),))
        if hunk is not None:
            await self.change((hunk,), source="memory_write" if key else "owner", key=key)
        found = self.book.holds(said, (file,))
        return Added(found.id if found else "", file, fresh=hunk is not None)

    async def change(self, hunks: Sequence[Hunk], *, source: str, key: str = "") -> None:
        """Record a change, then make it. Raises `WorkspaceError`, `StoreError`."""
        await self.record(hunks, source=source, key=key)
        self.book.apply(hunks)

    async def record(self, hunks: Sequence[Hunk], *, source: str, key: str = "") -> None:
        now = self.services.clock.now()
        await self.services.store.write(
            lambda connection: changes.record(
                connection, hunks, scope=self.scope.name, source=source, key=key or new_id("k"), now=now
            )
        )

    def one(self, word: str, *, waiting: bool = False) -> Remembered:
        """The one entry that `word` (an id, or words of it) means. Raises `InputError`."""
        found = named(self.book.waiting() if waiting else [*self.book.entries(), *self.book.waiting()], word)
        if not found:
            raise InputError(f"There is nothing about {word!r} in memory.", hint="/memory list shows what there is.")
        if len({normal(one.text) for one in found}) > 1:
            lines = "\n".join(shown(one) for one in found[:10])
            raise InputError(f"{len(found)} entries are meant by {word!r}:\n{lines}", hint="Give the id of one.")
        return found[0]

    async def edit(self, word: str, text: str) -> Remembered:
        """Put the owner's words in the place of an entry. Raises `InputError`, `WorkspaceError`."""
        entry = self.one(word)
        at = f"{self.services.memory.local(self.services.clock.now()):%Y-%m-%d %H:%M}"
        said = self.services.redactor.redact(checked(text))
        trust: Trust = entry.trust if entry.file.startswith(f"{self.scope.pending}/") else "owner"
        line = marked(said, at=at, source=entry.source or "said", trust=trust)
        await self.change((self.book.instead(entry, (line,)),), source="owner")
        return entry

    async def settle(self, word: str, *, confirm: bool) -> list[Remembered]:
        """Take in what waits, or throw it away, on the owner's word; `all` is all of it. Raises `InputError`."""
        found = self.book.waiting() if word == "all" else [self.one(word, waiting=True)]
        local = self.services.memory.local(self.services.clock.now())
        at, day = f"{local:%Y-%m-%d %H:%M}", f"{local:%Y-%m-%d}"
        for entry in [self.one(one.id, waiting=True) for one in found]:
            hunks = self.book.confirmed(entry, at=at, day=entry.at[:10] or day) if confirm else ()
            await self.change(hunks or (self.book.without(entry),), source="confirmed" if confirm else "rejected")
        return found

    async def undo(self, steps: int = 1) -> list[tuple[Change, list[str]]]:
        """Take back the newest automatic changes; with each the lines that were changed since and therefore stay."""
        store = self.services.store
        found = store.read(lambda connection: changes.newest(connection, self.scope.name, limit=steps))
        done: list[tuple[Change, list[str]]] = []
        for change in found:
            back = [changes.reverse(hunk) for hunk in reversed(change.hunks)]
            left = [line for hunk in back for line in changes.left_over(self.book.read(hunk.file), hunk)]
            self.book.apply(back)
            await store.write(lambda connection, change=change: changes.undo(connection, change.id))
            done.append((change, left))
        return done

    async def forget(self, word: str) -> Forgotten:
        """Forget an entry wherever it can be reached; the owner's word only. Raises `InputError`, `WorkspaceError`."""
        known = named([*self.book.entries(), *self.book.waiting()], word)
        words = normal(self.one(word).text) if known else normal(word)
        same = [one for one in known if normal(one.text) == words]
        files = self.book.saying(words) if words else []
        if not files:
            raise InputError(f"There is nothing about {word!r} in memory.", hint="/memory list shows what there is.")
        texts = list(dict.fromkeys([one.text for one in same] or [word.strip()]))
        lines = {normal(line) for text in texts if "\n" in text for line in text.splitlines()}
        now = self.services.clock.now()

        def work(connection: Connection) -> int:
            changes.forget(connection, self.scope.name, lambda line: says(line, words) or normal(line) in lines)
            name = same[0].id if same else hashlib.sha256(words.encode()).hexdigest()[:ID]
            audit.append(connection, "memory.forgotten", name, detail=f"in {len(files)} files", now=now)
            return erase.unquote(connection, texts, now=now)

        quoted = await self.services.store.write(work)
        self.book.erase(words, files)
        await self.services.memory.forgotten(files)
        await self.services.store.scrub()
        return Forgotten(tuple(texts), tuple(files), quoted)


def shown(entry: Remembered) -> str:
    """An entry in one line for people: id, when and out of what, its words."""
    flat = " ".join(entry.text.split())
    text = flat if len(flat) <= SHOWN else f"{flat[: SHOWN - 1]}…"
    told = ", ".join(part for part in (entry.at, entry.source or "yours", _trusted(entry.trust)) if part)
    return f"{entry.id}  {text}  ({told})"


def _trusted(trust: Trust) -> str:
    return "strangers had a part in it" if trust == "external" else ""
