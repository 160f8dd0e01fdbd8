"""The feed of one open conversation: what the log says, and on the side what is being said right now.

What is shown comes from the log; live events only say that there may be more of it, and what the answer reads like so
far. So a page that was away has lost nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from limpet.session.tree import next_leaf
from limpet.store import entries, outbox, sessions, turns
from limpet.store.outbox import Place
from limpet.store.sql import Connection
from limpet.types import event as events
from limpet.types.entry import AssistantEntry, Entry, Label, Leaf
from limpet.types.envelope import OutboxRow
from limpet.webui import texts
from limpet.webui.chats import chat_of
from limpet.webui.desk import Desk
from limpet.webui.rich import rich
from limpet.webui.transcript import Item, Transcript, beside, line, merged

LIVE = "live"
"""The id of the item that is being written."""
TAIL = 2_000
"""Characters of a running tool's output that are shown."""
NOTICES = 50


class Feed:
    """The conversation that is live under `key`, or the session `session` whether it is or not."""

    def __init__(self, desk: Desk, key: str, *, session: str = "") -> None:
        self.key = key
        self.session = session
        self.earlier = ""
        self.state = ""
        self.news = asyncio.Event()
        self._desk = desk
        self._fixed = bool(session)
        self._leaf = ""
        self._last = 0
        self._transcript = Transcript()
        self._notices = Place(0, 0)
        self._said = ""
        self._thought = ""
        self._told = ""
        self._progress: dict[str, str] = {}

    @contextmanager
    def listening(self) -> Generator[None]:
        """Hear what happens, inside the block."""
        with self._desk.watch.listening(self._hear):
            yield

    def load(self, *, before: str = "") -> list[Item]:
        """The newest items, or those before the entry `before`, in order."""
        found, self.earlier = self._desk.store.read(lambda connection: self._line(connection, before))
        transcript = Transcript()
        items = transcript.take(found)
        transcript.label(self.labels())
        if before:
            return items
        self._transcript = transcript
        if found and isinstance(found[-1].payload, AssistantEntry):
            self._said = self._thought = ""  # it is what was heard so far
        rows = self._latest()
        return merged(items, [item for row in rows if (item := beside(row)) is not None])

    def _line(self, connection: Connection, before: str) -> tuple[list[Entry], str]:
        if not self._fixed:
            live = sessions.live(connection, self.key)
            self.session = live.id if live else ""
        if not self.session:
            self._leaf, self._last = "", 0
            return [], ""
        if not before:
            self._leaf = sessions.leaf(connection, self.session)
            self._last = entries.last_seq(connection, self.session)
        return line(connection, self.session, before or self._leaf)

    def _latest(self) -> list[OutboxRow]:
        chat = chat_of(self.key)
        if not chat or self._fixed:
            return []
        where = self._desk.voice.address_of(chat)
        rows = self._desk.store.read(lambda connection: outbox.latest(connection, where, limit=NOTICES))
        if rows:
            self._notices = Place(rows[-1].place, rows[-1].id)
        return rows

    def look(self) -> list[Item] | None:
        """What is new since the last look, in order; None when all has to be loaded anew."""
        store = self._desk.store
        if not self._fixed:
            live = store.read(lambda connection: sessions.live(connection, self.key))
            if (live.id if live else "") != self.session:
                return None
        if self.session:
            turn = store.read(lambda connection: turns.live(connection, self.session))
            self.state = turn.state if turn is not None else ""
        found = store.read(lambda connection: entries.load(connection, self.session, after=self._last))
        for entry in found:
            self._last = entry.seq
            if isinstance(entry.payload, Label | Leaf) or (entry.parent != self._leaf and self._leaf):
                return None
            self._leaf = next_leaf(self._leaf, entry)
            if isinstance(entry.payload, AssistantEntry):
                self._said = self._thought = ""
        return [*self._transcript.take(found), *self._new_notices()]

    def _new_notices(self) -> list[Item]:
        chat = chat_of(self.key)
        if not chat or self._fixed:
            return []
        where, place = self._desk.voice.address_of(chat), self._notices
        rows = self._desk.store.read(lambda connection: outbox.after(connection, where, place, limit=NOTICES))
        if rows:
            self._notices = Place(rows[-1].place, rows[-1].id)
        return [item for row in rows if (item := beside(row)) is not None]

    def live(self) -> Item | None:
        """What is being said right now; None while nothing is."""
        if not (self._said or self._thought or self._told):
            return None
        now = self._desk.clock.now()
        return Item(
            id=LIVE,
            kind="agent",
            at=now,
            blocks=rich(self._said),
            thinking=self._thought,
            meta=self._told,
            is_live=True,
        )

    def progress(self) -> dict[str, str]:
        """What running tools have put out so far, by call."""
        return self._progress

    def labels(self) -> dict[str, str]:
        """The labels of the conversation, each with its entry."""
        found = self._desk.store.read(lambda connection: entries.of_kind_in(connection, self.session, "label"))
        return {one.payload.label: one.payload.target for one in found if isinstance(one.payload, Label)}

    def _hear(self, key: str, event: events.Event) -> None:
        if key != self.key:
            return
        match event:
            case events.TextDelta(text=text):
                self._said += text
                self._told = ""
            case events.ThinkingDelta(text=text):
                self._thought += text
            case events.AnswerReset(reason=reason):
                self._said = self._thought = ""
                self._told = texts.AGAIN.format(reason=reason)
            case events.ToolProgress(call=call, text=text):
                self._progress[call] = (self._progress.get(call, "") + text)[-TAIL:]
            case events.ToolEnded(call=call):
                self._progress.pop(call, None)
            case events.Notice(text=text):
                self._told = text
            case events.TurnStarted() | events.TurnEnded():
                self._said = self._thought = self._told = ""
                self._progress.clear()
            case _:
                pass
        self.news.set()
