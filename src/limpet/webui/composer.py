"""Where one speaks: the text, the files that go with it, and the button that stops."""

from __future__ import annotations

from nicegui import events, ui

from limpet.errors import LimpetError
from limpet.types.channel import File
from limpet.webui import chats, texts
from limpet.webui.desk import Desk
from limpet.webui.feed import Feed
from limpet.webui.parts import icon_button, tell, told

LARGEST = 20_000_000
"""Bytes of one file."""
ENTER = "(event) => { if (event.shiftKey || event.isComposing) return; event.preventDefault(); emit(); }"
"""Enter says it, unless it chooses a character that is being composed."""


class Composer:
    """Says things in the chat `name`, of which `feed` tells."""

    def __init__(self, desk: Desk, name: str, feed: Feed) -> None:
        self._desk = desk
        self._name = name
        self._feed = feed
        self._files: list[File] = []

    def build(self) -> None:
        self._chosen = ui.element("div").classes("lp-chosen")
        with ui.element("div").classes("lp-composer"):
            self._upload = ui.upload(
                multiple=True,
                auto_upload=True,
                max_file_size=LARGEST,
                on_upload=self._attach,
                on_rejected=lambda: ui.notify(texts.CHAT_FILE_TOO_LARGE.format(size=LARGEST // 1_000_000)),
            ).style("display: none")
            icon_button("attach_file", texts.CHAT_ATTACH, lambda: self._upload.run_method("pickFiles"))
            self._text = ui.textarea().props(f'outlined autogrow dense aria-label="{texts.CHAT_SAY}" maxlength=400000')
            self._text.on("keydown.enter", self._say, js_handler=ENTER)
            self._text.on("keydown.esc", self._stop)
            self._stop_button = icon_button("stop", texts.CHAT_STOP, self._stop)
            icon_button("send", texts.CHAT_SEND, self._say, color="primary")

    def work(self, *, is_on: bool) -> None:
        """Whether there is something to stop."""
        self._stop_button.set_visibility(is_on)

    async def _say(self) -> None:
        text = (self._text.value or "").strip()
        if not text and not self._files:
            return
        self._text.set_value("")
        try:
            await chats.say(self._desk, self._name, text, files=self._files)
        except LimpetError as error:
            self._text.set_value(text)  # nothing that was typed is lost
            tell(error)
            return
        self._files.clear()
        self._chosen.clear()
        self._feed.news.set()

    async def _stop(self) -> None:
        async with told():
            if await chats.stop(self._desk, self._feed.key):
                ui.notify(texts.CHAT_STOPPED)

    async def _attach(self, event: events.UploadEventArguments) -> None:
        file = chats.file_of(event.file.name, event.file.content_type, await event.file.read())
        self._files.append(file)
        with self._chosen:
            chip = ui.button(file.name, icon="close").props("outline no-caps dense")
            chip.on_click(lambda: self._leave_out(file, chip))
            with chip:
                ui.tooltip(texts.CHAT_LEAVE_OUT)

    def _leave_out(self, file: File, chip: ui.button) -> None:
        self._files.remove(file)
        chip.delete()
