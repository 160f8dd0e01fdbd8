from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from limpet.channels.discord.channel import DiscordChannel
from limpet.channels.kinds import Means
from limpet.config.channels import DiscordSettings
from limpet.testing.blobs import FolderBlobs
from limpet.testing.clock import FakeClock
from limpet.testing.fakes.discord import FakeDiscord, Fault, Posted, Way
from limpet.testing.fakes.discord.rooms import ME
from limpet.types.envelope import Address, Attachment
from tests.channel.harness import ALL, Place, Say, Shown
from tests.channel.harness import Fault as Failing

ROOM, THREAD = "600", "601"
PEOPLE = {"ann": "11", "bob": "12"}


def bot(discord: FakeDiscord, folder: Path, *, clock: FakeClock | None = None) -> DiscordChannel:
    """The bot of the fake, as the gateway makes it."""
    settings = DiscordSettings(token="env:TOKEN", base_url=discord.base_url)
    blobs = FolderBlobs(folder / "blobs")
    means = Means(clock or FakeClock(1_785_000_000_000), str(folder / "discord"), lambda _: discord.token, blobs.path)
    return DiscordChannel("main", settings, means, again=0.0)


class DiscordHarness:
    skills = ALL
    secrets = (FakeDiscord.token, FakeDiscord.token.rpartition(".")[2])

    def __init__(self, folder: Path) -> None:
        self.discord = FakeDiscord()
        self.discord.room(ROOM)
        self.discord.room(THREAD, name="plans", parent=ROOM)
        self._folder = folder
        self._blobs = FolderBlobs(folder / "blobs")

    async def __aenter__(self) -> Self:
        await self.discord.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.discord.shut()

    def make(self) -> DiscordChannel:
        return bot(self.discord, self._folder)

    def address(self, place: Place) -> Address:
        chat = "91" if place == "direct" else ROOM
        return Address("discord", "main", chat, THREAD if place == "thread" else "")

    def sender(self, name: Literal["ann", "bob"]) -> str:
        return PEOPLE[name]

    async def say(self, say: Say) -> str:
        where = self._room(say.place)
        posts = self.discord.rooms.rooms[where].posts
        if say.pressed:
            return await self.discord.press(posts[say.reply_to], say.text, sender=PEOPLE[say.sender])
        if say.replaces:
            await self.discord.change(posts[say.replaces], say.text)
            return say.replaces
        text = f"<@{ME}> {say.text}" if say.mention else say.text
        way = Way(reply_to=say.reply_to, file=say.file)
        return (await self.discord.say(text, sender=PEOPLE[say.sender], place=where, way=way)).id

    def _room(self, place: Place) -> str:
        where = self.address(place)
        return where.thread or where.chat

    async def waiting(self) -> int:
        return len(self.discord.gateway.waiting())

    async def shown(self, place: Place) -> list[Shown]:
        return [_shown(post) for post in self.discord.ours(self._room(place))]

    async def reaction(self, message: str) -> str:
        found = self.discord.rooms.rooms["91"].posts[message].reactions
        return "".join(name for who, name in found if who == ME)

    async def typed(self, place: Place) -> int:
        return self.discord.rooms.rooms[self._room(place)].typed

    async def attach(self, name: str, data: bytes) -> Attachment:
        return Attachment(await self._blobs.put(data), name, "text/plain", len(data))

    async def fail(self, fault: Failing) -> None:
        send = "POST /channels/91/messages"
        if fault == "unreachable":
            await self.discord.shut()
        elif fault == "limited":
            self.discord.fault(send, Fault("answer", status=429, about="You are being rate limited.", retry_after=2.0))
        elif fault == "refused":
            self.discord.fault(send, Fault("answer", status=403, code=50001, about="Missing Access"))
        else:
            self.discord.fault(send, Fault("lose", times=2))

    async def heal(self) -> None:
        await self.discord.shut()
        await self.discord.open()

    async def cut(self) -> None:
        await self.discord.gateway.cut()


def _shown(post: Posted) -> Shown:
    return Shown(
        post.id,
        post.text,
        reply_to=post.reply_to,
        files=tuple(name for name, _ in post.files),
        buttons=tuple(label for label, _ in post.buttons),
    )
