"""The view of one conversation: its messages, what waits for a word, and where one speaks."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

from nicegui import ui

from limpet.errors import LimpetError
from limpet.types.approval import Approval, Reply
from limpet.webui import chats, texts
from limpet.webui.approval_box import approval_box
from limpet.webui.chat_bar import chat_bar
from limpet.webui.composer import Composer
from limpet.webui.desk import Desk
from limpet.webui.feed import Feed
from limpet.webui.message import Message, Wish
from limpet.webui.parts import ask_text, start, told
from limpet.webui.transcript import BESIDE, PAGE, Item

LOOK = 1.0
"""Seconds between two looks when nothing has been heard."""
PACE = 0.04
"""Seconds between two pictures of what is being written, at the least."""
REST = 3
"""So many times as long as a picture takes nothing is done: a long answer must not keep the gateway busy."""
MOST = 3 * PAGE
"""Messages that the page holds at once; then the oldest of them go."""


def show(desk: Desk, name: str) -> None:
    """The chat `name` of the page."""
    try:
        key = chats.key_of(name)
    except LimpetError as error:
        ui.label(error.present()).classes("lp-page lp-bad")
        return
    ChatView(desk, name, Feed(desk, key)).build()


class ChatView:
    """A chat in a browser. `feed` says what is in it."""

    def __init__(self, desk: Desk, name: str, feed: Feed) -> None:
        self._desk = desk
        self._name = name
        self._feed = feed
        self._composer = Composer(desk, name, feed)
        self._shown: dict[str, Message] = {}
        self._asked: tuple[str, ...] = ()
        self._live: Message | None = None
        self._most = MOST

    def build(self) -> None:
        with ui.element("div").classes("lp-chat"):
            chat_bar(self._desk, self._name, lambda: self._feed.session)
            self._box = ui.element("div").classes("lp-scroll")
            self._box.props(f'tabindex="0" role="region" aria-label="{texts.MESSAGES}"')
            with self._box, ui.element("div").classes("lp-stream"):
                self._earlier = ui.button(texts.CHAT_EARLIER, on_click=self._go_back).props("flat no-caps")
                self._list = ui.element("div").classes("lp-stream").props('role="log" aria-live="polite"')
                self._tail = ui.element("div").classes("lp-stream")
                self._approvals = ui.element("div").classes("lp-stream")
                self._empty = ui.label(texts.CHAT_EMPTY).classes("lp-dim")
            self._composer.build()
        self._load()
        start(self._run(), f"page of chat {self._name}")

    def _load(self) -> None:
        """Show the newest messages as they stand on disk."""
        items = self._feed.load()
        self._list.clear()
        self._tail.clear()
        self._shown.clear()
        self._live = None
        with self._list:
            for item in items:
                self._add(item)
        self._after(scroll=True)

    def _add(self, item: Item) -> None:
        self._shown[item.id] = Message(item, wanted=self._wanted)

    async def _run(self) -> None:
        """Keep what is shown as it is, until the view is left."""
        feed = self._feed
        with feed.listening():
            nudged = start(self._heed_nudges(), "nudges of a page")
            try:
                while not self._list.is_deleted:
                    try:
                        async with asyncio.timeout(LOOK):
                            await feed.news.wait()
                    except TimeoutError:
                        pass
                    feed.news.clear()
                    began = self._desk.clock.monotonic()
                    if not self._list.is_deleted:
                        self._refresh()
                    await asyncio.sleep(max(PACE, REST * (self._desk.clock.monotonic() - began)))
            finally:
                nudged.cancel()

    async def _heed_nudges(self) -> None:
        while True:
            await self._desk.nudges.wait(LOOK)
            self._feed.news.set()

    def _refresh(self) -> None:
        found = self._feed.look()
        if found is None:
            self._load()
            return
        with self._list:
            for item in found:
                if (shown := self._shown.get(item.id)) is not None:
                    shown.show(item)
                else:
                    self._add(item)
        self._prune()
        self._show_live()
        self._show_approvals()
        self._after(scroll=bool(found) or self._live is not None)

    def _show_live(self) -> None:
        item, progress = self._feed.live(), self._feed.progress()
        for call, text in progress.items():
            if (shown := self._shown.get(call.partition(".")[0])) is not None:
                shown.progress({call: text})
        if item is None:
            if self._live is not None:
                self._live.delete()
                self._live = None
        elif self._live is None:
            with self._tail:
                self._live = Message(item, wanted=self._wanted, readonly=True)
        else:
            self._live.show(item)

    def _show_approvals(self) -> None:
        waiting = chats.waiting(self._desk, self._feed.key)
        names = tuple(one.id for one in waiting)
        if names != self._asked:
            self._asked = names
            self._approvals.clear()
            with self._approvals:
                for one in waiting:
                    approval_box(one, self._decide)

    def _prune(self) -> None:
        """A page that stays open for days does not grow for ever."""
        for name in list(self._shown)[: max(0, len(self._shown) - self._most)]:
            self._shown.pop(name).delete()
            if not name.startswith(BESIDE):
                self._feed.earlier = name

    def _after(self, *, scroll: bool) -> None:
        self._earlier.set_visibility(bool(self._feed.earlier))
        self._empty.set_visibility(not self._shown and self._live is None)
        self._composer.work(is_on=bool(self._feed.state))
        if scroll:
            self._box.client.run_javascript(FOLLOW.format(id=self._box.html_id))

    def _go_back(self) -> None:
        items = self._feed.load(before=self._feed.earlier)
        self._most += len(items)
        with self._list:
            for place, item in enumerate(items):
                self._add(item)
                self._shown[item.id].move(target_index=place)
        self._earlier.set_visibility(bool(self._feed.earlier))

    async def _decide(self, approval: Approval, reply: Reply) -> None:
        async with told():
            await chats.decide(self._desk, approval, reply)
        self._feed.news.set()

    def _wanted(self, wish: Wish) -> Coroutine[None, None, None] | None:
        match wish.act:
            case "copied" | "uncopied":
                ui.notify(texts.COPIED if wish.act == "copied" else texts.UNCOPIED)
                return None
            case "fork":
                return self._fork(wish.id)
            case "edit":
                ask_text(texts.CHAT_EDIT, self._shown[wish.id].item.text, lambda text: self._reworded(wish.id, text))
                return None
            case "label":
                ask_text(texts.CHAT_LABEL, "", lambda text: self._label(wish.id, text))
                return None

    async def _fork(self, entry: str) -> None:
        async with told():
            name = await chats.fork(self._desk, self._feed.session, entry)
            ui.navigate.to(f"/chat/{name}")

    async def _reworded(self, entry: str, text: str) -> None:
        """Say something else instead, in a copy that ends before it."""
        if not text.strip():
            return
        async with told():
            name = await chats.fork(self._desk, self._feed.session, entry, before=True)
            await chats.say(self._desk, name, text.strip())
            ui.navigate.to(f"/chat/{name}")

    async def _label(self, entry: str, text: str) -> None:
        async with told():
            await chats.label(self._desk, self._feed.session, entry, text=text)
            ui.notify(texts.CHAT_LABELLED)
        self._feed.news.set()


FOLLOW = (
    "(() => {{ const box = document.getElementById('{id}'); if (!box) return;"
    " const near = box.scrollHeight - box.scrollTop - box.clientHeight < 400 || !box.dataset.seen;"
    " box.dataset.seen = '1'; if (near) requestAnimationFrame(() => box.scrollTo(0, box.scrollHeight)); }})()"
)
"""Stays at the end, unless somebody has scrolled up to read."""
