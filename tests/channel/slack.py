from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from limpet.channels.kinds import Means
from limpet.channels.slack.channel import SlackChannel
from limpet.config.channels import SlackSettings
from limpet.testing.blobs import FolderBlobs
from limpet.testing.clock import FakeClock
from limpet.testing.fakes.slack import FakeSlack, Fault, Posted, Way
from limpet.testing.fakes.slack.rooms import ME
from limpet.types.envelope import Address, Attachment
from tests.channel.harness import ALL, Place, Say, Shown
from tests.channel.harness import Fault as Failing

ROOM = "C1"
PEOPLE = {"ann": "U1", "bob": "U2"}
_EMOJI = {"eyes": "👀"}


def bot(slack: FakeSlack, folder: Path, *, threads: bool = False) -> SlackChannel:
    """The bot of the fake, as the gateway makes it."""
    settings = SlackSettings(bot_token="bot", app_token="app", base_url=slack.base_url, threads=threads)
    blobs = FolderBlobs(folder / "blobs")
    tokens = {"bot": slack.bot_token, "app": slack.app_token}
    clock = FakeClock(1_785_000_000_000)
    means = Means(clock, str(folder / "slack"), lambda value: tokens[value], blobs.path)
    return SlackChannel("main", settings, means, sleep=clock.sleep)


class SlackHarness:
    """Answers that hang on a message are threads on Slack, so there are no replies of another kind."""

    skills = ALL - {"replies"}
    secrets = (FakeSlack.bot_token, FakeSlack.app_token, "ticket-secret")

    def __init__(self, folder: Path) -> None:
        self.slack = FakeSlack()
        self.slack.room(ROOM)
        self._folder = folder
        self._blobs = FolderBlobs(folder / "blobs")
        root = Posted(ts="1780000000.000000", room=ROOM, user="U2", text="the plans")
        self.slack.rooms.rooms[ROOM].posts[root.ts] = root
        self._thread = root.ts

    async def __aenter__(self) -> Self:
        await self.slack.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.slack.shut()

    def make(self) -> SlackChannel:
        return bot(self.slack, self._folder)

    def address(self, place: Place) -> Address:
        chat = "D1" if place == "direct" else ROOM
        return Address("slack", "main", chat, self._thread if place == "thread" else "")

    def sender(self, name: Literal["ann", "bob"]) -> str:
        return PEOPLE[name]

    async def say(self, say: Say) -> str:
        where = self.address(say.place)
        posts = self.slack.rooms.rooms[where.chat].posts
        if say.pressed:
            await self.slack.press(posts[say.reply_to], say.text, sender=PEOPLE[say.sender])
            return say.reply_to
        if say.replaces:
            await self.slack.change(posts[say.replaces], say.text)
            return say.replaces
        text = f"<@{ME}> {say.text}" if say.mention else say.text
        way = Way(thread=where.thread, file=say.file)
        return (await self.slack.say(text, sender=PEOPLE[say.sender], room=where.chat, way=way)).ts

    async def waiting(self) -> int:
        return len(self.slack.sockets.waiting)

    async def shown(self, place: Place) -> list[Shown]:
        where = self.address(place)
        return [_shown(post) for post in self.slack.ours(where.chat, where.thread)]

    async def reaction(self, message: str) -> str:
        found = self.slack.rooms.rooms["D1"].posts[message].reactions
        return "".join(_EMOJI[name] for who, name in found if who == ME)

    async def typed(self, place: Place) -> int:
        return 0

    async def attach(self, name: str, data: bytes) -> Attachment:
        return Attachment(await self._blobs.put(data), name, "text/plain", len(data))

    async def fail(self, fault: Failing) -> None:
        if fault == "unreachable":
            await self.slack.shut()
        elif fault == "limited":
            self.slack.fault("chat.postMessage", Fault("answer", status=429, error="ratelimited", retry_after=2))
        elif fault == "refused":
            self.slack.fault("chat.postMessage", Fault("answer", error="channel_not_found"))
        else:
            self.slack.fault("chat.postMessage", Fault("lose"))

    async def heal(self) -> None:
        await self.slack.shut()
        await self.slack.open()

    async def cut(self) -> None:
        await self.slack.sockets.cut()


def _shown(post: Posted) -> Shown:
    return Shown(
        post.ts,
        post.text,
        files=tuple(name for name, _ in post.files),
        buttons=tuple(label for label, _ in post.buttons),
    )
