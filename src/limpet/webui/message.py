"""The element that shows one message: `static/message.js` makes it of plain data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec
from msgspec import Struct
from nicegui.element import Element
from nicegui.events import GenericEventArguments

from limpet.webui import texts
from limpet.webui.transcript import Item

Act = Literal["copied", "uncopied", "edit", "fork", "label"]


class Wish(Struct, frozen=True):
    """What the owner wants of a message."""

    act: Act
    id: str


class Message(Element, component="static/message.js"):
    """Shows `item`; tells `wanted` of what is pressed in it."""

    def __init__(self, item: Item, *, wanted: Callable[[Wish], object], readonly: bool = False) -> None:
        super().__init__()
        self.item = item
        self._props["labels"] = texts.MESSAGE
        self._props["readonly"] = readonly
        self._props["item"] = msgspec.to_builtins(item)
        self._wanted = wanted
        self.on("act", self._told)

    def show(self, item: Item) -> None:
        """Show another state of the message, or another message."""
        self.item = item
        self._props["item"] = msgspec.to_builtins(item)
        self.update()

    def progress(self, found: dict[str, str]) -> None:
        """Show what running tools have put out so far."""
        self._props["progress"] = found
        self.update()

    def _told(self, event: GenericEventArguments) -> object:
        return self._wanted(msgspec.convert(event.args, Wish))
