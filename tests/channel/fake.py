from __future__ import annotations

import hashlib
from typing import Literal, Self

from limpet.testing.channel import FakeChannel, Ways
from limpet.testing.platform import FakeFile, FakePlatform, Kind, Typed
from limpet.types.envelope import Address, Attachment
from tests.channel.harness import ALL, Fault, Place, Say, Shown

_KINDS: dict[Fault, Kind] = {"unreachable": "refuse", "limited": "limit", "refused": "reject", "lost": "lose"}


class FakeHarness:
    """`FakeChannel` itself; over a folder when one is passed."""

    skills = ALL
    secrets = ()

    def __init__(self, folder: str | None = None) -> None:
        self.platform = FakePlatform(folder)
        self._people = FakeChannel(platform=self.platform)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    def make(self) -> FakeChannel:
        return FakeChannel(platform=self.platform)

    def address(self, place: Place) -> Address:
        return self._people.address("ann" if place == "direct" else "group", "topic" if place == "thread" else "")

    def sender(self, name: Literal["ann", "bob"]) -> str:
        return name

    async def say(self, say: Say) -> str:
        where = self.address(say.place)
        grouped = say.place != "direct"
        ours = {one.message for one in self._people.visible(where.chat, where.thread) if not one.sender}
        said = await self._people.say(
            say.text,
            sender=say.sender,
            chat=where.chat,
            ways=Ways(
                thread=where.thread,
                in_group=grouped,
                mentioned=grouped and (say.mention or say.reply_to in ours),
                replaces=say.replaces,
                reply_to=say.reply_to,
                pressed=say.pressed,
                files=(FakeFile(*say.file),) if say.file else (),
            ),
        )
        return said.message

    async def waiting(self) -> int:
        return len(self.platform.waiting())

    async def shown(self, place: Place) -> list[Shown]:
        where = self.address(place)
        found: list[Shown] = []
        for one in self._people.visible(where.chat, where.thread):
            if one.piece is not None:
                files = tuple(attachment.name for attachment in one.piece.attachments)
                buttons = tuple(choice.label for choice in one.piece.choices)
                found.append(Shown(one.message, one.text, one.reply_to, files=files, buttons=buttons))
        return found

    async def reaction(self, message: str) -> str:
        found = self.platform.message(message)
        assert found is not None
        return found.reaction

    async def typed(self, place: Place) -> int:
        return sum(typed.address == self.address(place) for typed in self.platform.of(Typed))

    async def attach(self, name: str, data: bytes) -> Attachment:
        return Attachment(hashlib.sha256(data).hexdigest(), name, "text/plain", len(data))

    async def fail(self, fault: Fault) -> None:
        self._people.fail(_KINDS[fault], seconds=2.0 if fault == "limited" else 0.0)

    async def heal(self) -> None:
        pass

    async def cut(self) -> None:
        self._people.cut()
