"""Updates to arrivals: who said what where, and whether the bot is meant."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from limpet.channels.telegram.api import Api
from limpet.channels.telegram.wire import Chat, Entity, Media, Message, Pressed, Update, User
from limpet.types.channel import Arrival, File
from limpet.types.envelope import Address

_TO_ALL = re.compile(r"(?<![\w@])@(?:all|everyone)(?!\w)", re.IGNORECASE)
_COMMAND = re.compile(r"/(\w+)")


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads for the bot `me`. `chat_of` gives the id under which we know a chat; files are fetched by `api`.

    `commands` maps commands as Telegram writes them to their real names.
    """

    me: User
    account: str
    chat_of: Callable[[int], str]
    api: Api
    commands: dict[str, str]

    def arrival(self, update: Update) -> Arrival | None:
        """What an update says to us; None: nothing was said, or by a bot. Its event is the `update_id`."""
        event = str(update.update_id)
        if update.message is not None:
            return self._message(update.message, event)
        if update.edited_message is not None:
            found = self._message(update.edited_message, event)
            return found and _changed(found, update.edited_message)
        if update.callback_query is not None:
            return self._pressed(update.callback_query, event)
        return None

    def _message(self, message: Message, event: str) -> Arrival | None:
        sender, name = _sender(message)
        text, entities = _text(message)
        files = self._files(message)
        if not sender or not (text or files):
            return None
        answered = _answered(message)
        replied = answered is not None and answered.sender is not None and answered.sender.id == self.me.id
        text, named = self._mentions(text, entities)
        return Arrival(
            self.address(message),
            event,
            sender,
            text,
            message=str(message.message_id),
            sender_name=name,
            chat_name=message.chat.title,
            in_group=in_group(message.chat),
            mentioned=in_group(message.chat) and (named or replied),
            to_all=bool(_TO_ALL.search(text)),
            quoted=_quoted(message, answered),
            album=message.media_group_id,
            parent=self.chat_of(message.chat.id) if message.is_topic_message else "",
            files=files,
            sent=message.date * 1000,
            reply_to=str(answered.message_id) if answered is not None else "",
        )

    def address(self, message: Message) -> Address:
        """Where a message stands. A thread id that is no topic's only marks a chain of replies; "General" has none."""
        thread = str(message.message_thread_id) if message.is_topic_message and message.message_thread_id else ""
        return Address("telegram", self.account, self.chat_of(message.chat.id), thread)

    def _pressed(self, pressed: Pressed, event: str) -> Arrival | None:
        if pressed.message is None or not pressed.data:
            return None
        message = pressed.message
        return Arrival(
            self.address(message),
            event,
            str(pressed.sender.id),
            pressed.data,
            message=str(message.message_id),
            sender_name=_name(pressed.sender),
            chat_name=message.chat.title,
            in_group=in_group(message.chat),
            mentioned=in_group(message.chat),
            pressed=True,
            reply_to=str(message.message_id),
        )

    def _mentions(self, text: str, entities: tuple[Entity, ...]) -> tuple[str, bool]:
        """The text without the bot's name at its beginning and in commands, and whether it was named."""
        named = False
        units = text.encode("utf-16-le")
        for entity in reversed(entities):
            begin, end = entity.offset * 2, (entity.offset + entity.length) * 2
            word = units[begin:end].decode("utf-16-le", "replace")
            if not self._means(entity, word):
                continue
            named = True
            if entity.type == "bot_command":
                units = units[:begin] + word.partition("@")[0].encode("utf-16-le") + units[end:]
            elif begin == 0 and units[end:].strip(b" \0\n"):
                units = units[end:]
        text = units.decode("utf-16-le", "replace")
        return self._real_command(text.lstrip(" ,:\n") if named else text), named

    def _means(self, entity: Entity, word: str) -> bool:
        """Whether an entity names the bot: the exact name, of which others may be longer."""
        name = f"@{self.me.username}".lower()
        if entity.type == "text_mention":
            return entity.user is not None and entity.user.id == self.me.id
        if entity.type == "mention":
            return word.lower() == name
        return entity.type == "bot_command" and word.lower().endswith(name)

    def _real_command(self, text: str) -> str:
        found = _COMMAND.match(text)
        if found is None or found[1] not in self.commands:
            return text
        return f"/{self.commands[found[1]]}{text[found.end() :]}"

    def _files(self, message: Message) -> tuple[File, ...]:
        found: list[File] = []
        if message.photo:
            largest = max(message.photo, key=lambda one: one.width)
            name = f"photo-{message.message_id}.jpg"
            found.append(self.api.file(largest.file_id, name, "image/jpeg", size=largest.file_size))
        # An animation is given a second time as a document, for programs that know none.
        document = None if message.animation is not None else message.document
        rest: tuple[tuple[Media | None, str, str, bool], ...] = (
            (message.animation, "animation.mp4", "video/mp4", False),
            (document, "document", "application/octet-stream", False),
            (message.voice, "voice.ogg", "audio/ogg", True),
            (message.audio, "audio.mp3", "audio/mpeg", False),
            (message.video, "video.mp4", "video/mp4", False),
            (message.video_note, "video.mp4", "video/mp4", True),
        )
        for media, name, mime, voice in rest:
            if media is not None:
                name, mime = media.file_name or name, media.mime_type or mime
                found.append(self.api.file(media.file_id, name, mime, size=media.file_size, voice=voice))
        return tuple(found)


def in_group(chat: Chat) -> bool:
    return chat.type in ("group", "supergroup")


def _changed(arrival: Arrival, message: Message) -> Arrival:
    return replace(arrival, replaces=arrival.message, sent=(message.edit_date or message.date) * 1000)


def _sender(message: Message) -> tuple[str, str]:
    """The stable id and the name of who said it; empty for bots and for nobody.

    Who speaks for a group or channel is that chat (its id is negative); the user beside it is a stand-in.
    """
    if message.sender_chat is not None:
        return str(message.sender_chat.id), message.sender_chat.title or message.sender_chat.username
    if message.sender is None or message.sender.is_bot:
        return "", ""
    return str(message.sender.id), _name(message.sender)


def _name(user: User) -> str:
    return f"{user.first_name} {user.last_name}".strip() or user.username


def _text(message: Message) -> tuple[str, tuple[Entity, ...]]:
    if message.text:
        return message.text, message.entities
    if message.caption:
        return message.caption, message.caption_entities
    if message.location is not None:
        return f"[location: {message.location.latitude}, {message.location.longitude}]", ()
    if message.contact is not None:
        one = message.contact
        return f"[contact: {one.first_name} {one.last_name}".rstrip() + f", {one.phone_number}]", ()
    if message.sticker is not None:
        return message.sticker.emoji or "[sticker]", ()
    return "", ()


def _answered(message: Message) -> Message | None:
    """The message that this one answers; in a topic everything "answers" the notice that it was opened."""
    answered = message.reply_to_message
    if answered is None or answered.forum_topic_created is not None:
        return None
    if message.is_topic_message and answered.message_id == message.message_thread_id:
        return None
    return answered


def _quoted(message: Message, answered: Message | None) -> str:
    if message.quote is not None and message.quote.text:
        return message.quote.text
    return _text(answered)[0] if answered is not None else ""
