from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Literal, Self

from limpet.channels.kinds import Means
from limpet.channels.telegram.channel import TelegramChannel
from limpet.channels.telegram.polling import Patience
from limpet.config.channels import TelegramSettings
from limpet.testing.blobs import FolderBlobs
from limpet.testing.clock import FakeClock
from limpet.testing.fakes.telegram import FakeTelegram, Fault, Posted, Way
from limpet.types.envelope import Address, Attachment
from tests.channel.harness import ALL, Place, Say, Shown
from tests.channel.harness import Fault as Failing

GROUP, TOPIC = -1001234567890, 42
PEOPLE = {"ann": 11, "bob": 12}


async def hardly(seconds: float) -> None:
    """In place of the pauses after a failure."""
    await asyncio.sleep(min(seconds, 0.005))


def bot(
    telegram: FakeTelegram, folder: Path, *, patience: Patience | None = None, settings: TelegramSettings | None = None
) -> TelegramChannel:
    """The bot of the fake, as the gateway makes it."""
    settings = settings or TelegramSettings(token="env:TOKEN", base_url=telegram.base_url)
    means = Means(FakeClock(), str(folder / "telegram"), lambda _: telegram.token, FolderBlobs(folder / "blobs").path)
    return TelegramChannel("main", settings, means, patience=patience or Patience(poll=1, answer=5.0, sleep=hardly))


class TelegramHarness:
    skills = ALL
    secrets = (FakeTelegram.token, FakeTelegram.token.partition(":")[2])

    def __init__(self, folder: Path) -> None:
        self.telegram = FakeTelegram()
        self.telegram.group(GROUP, topics=(TOPIC,))
        self._folder = folder
        self._blobs = FolderBlobs(folder / "blobs")

    async def __aenter__(self) -> Self:
        await self.telegram.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.telegram.shut()

    def make(self) -> TelegramChannel:
        return bot(self.telegram, self._folder)

    def address(self, place: Place) -> Address:
        chat = "11" if place == "direct" else str(GROUP)
        return Address("telegram", "main", chat, str(TOPIC) if place == "thread" else "")

    def sender(self, name: Literal["ann", "bob"]) -> str:
        return str(PEOPLE[name])

    async def say(self, say: Say) -> str:
        chat = int(self.address(say.place).chat)
        posts = self.telegram.chats.rooms[chat].posts
        if say.pressed:
            self.telegram.press(posts[int(say.reply_to)], say.text, sender=PEOPLE[say.sender])
            return say.reply_to
        if say.replaces:
            self.telegram.change(posts[int(say.replaces)], say.text)
            return say.replaces
        way = Way(
            thread=TOPIC if say.place == "thread" else 0,
            topic=say.place == "thread",
            reply_to=int(say.reply_to or 0),
            file=say.file,
        )
        text = f"@helperbot {say.text}" if say.mention else say.text
        return str(self.telegram.say(text, sender=PEOPLE[say.sender], chat=chat, way=way).id)

    async def waiting(self) -> int:
        return len(self.telegram.updates)

    async def shown(self, place: Place) -> list[Shown]:
        where = self.address(place)
        return [_shown(post) for post in self.telegram.ours(int(where.chat), int(where.thread or 0))]

    async def reaction(self, message: str) -> str:
        return self.telegram.chats.rooms[11].posts[int(message)].reaction

    async def typed(self, place: Place) -> int:
        where = self.address(place)
        return self.telegram.chats.rooms[int(where.chat)].typed.count(int(where.thread or 0))

    async def attach(self, name: str, data: bytes) -> Attachment:
        return Attachment(await self._blobs.put(data), name, "text/plain", len(data))

    async def fail(self, fault: Failing) -> None:
        if fault == "unreachable":
            await self.telegram.shut()
        elif fault == "limited":
            self.telegram.fault("sendMessage", Fault("answer", status=429, about="Too Many Requests", retry_after=2))
        elif fault == "refused":
            self.telegram.fault("sendMessage", Fault("answer", status=400, about="Bad Request: chat not found"))
        else:
            self.telegram.fault("sendMessage", Fault("lose"))

    async def heal(self) -> None:
        await self.telegram.shut()
        await self.telegram.open()

    async def cut(self) -> None:
        self.telegram.fault("getUpdates", Fault("reset"))
        await self.telegram.shut()
        await self.telegram.open()


def _shown(post: Posted) -> Shown:
    return Shown(
        str(post.id),
        post.text,
        reply_to=str(post.reply_to or ""),
        reaction=post.reaction,
        files=tuple(name for name, _ in post.files),
        buttons=tuple(label for label, _ in post.keyboard),
    )
