"""The methods of the fake Bot API, each with the checks of the real one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

import msgspec

from limpet.testing.fakes.shape import Refused, need
from limpet.testing.fakes.telegram.chats import ME, Chats, Json, Posted, Room
from limpet.testing.fakes.telegram.html import Span, parse, units
from limpet.testing.fakes.telegram.rates import Rates

_Kind = TypeVar("_Kind")
_REACTIONS = frozenset("👍👎❤🔥🥰👏😁🤔🤯😱🤬😢🎉🤩🙏👌👀🤝✍🫡⚡💯🤷🆒")
"""Some of those that a bot may use."""
_UPLOADS = {"sendPhoto": "photo", "sendDocument": "document", "sendVoice": "voice", "sendAudio": "audio"}


class Params:
    """Parameters of a call; forms carry numbers and objects as text."""

    def __init__(self, found: Json) -> None:
        self._found = found

    def of(self, name: str, kind: type[_Kind]) -> _Kind | None:
        """Raises `Refused` when the parameter has another form."""
        value = self._found.get(name)
        if value is None or value == "":
            return None
        try:
            if isinstance(value, str) and kind is not str:
                return msgspec.json.decode(value, type=kind)
            return msgspec.convert(value, kind)
        except (msgspec.ValidationError, msgspec.DecodeError):
            raise Refused(f"Bad Request: invalid {name} specified") from None

    def integer(self, name: str, default: int | None = None) -> int:
        found = self.of(name, int)
        if found is None and default is None:
            raise Refused(f"Bad Request: {name} is empty")
        return found if found is not None else default or 0

    def text(self, name: str) -> str:
        return self.of(name, str) or ""

    def upload(self, name: str) -> tuple[str, bytes]:
        found = self._found.get(name)
        need(isinstance(found, tuple), f"Bad Request: there is no {name} in the request")
        return msgspec.convert(found, tuple[str, bytes])


class Methods:
    """What a bot can do. `queries` are presses that were not answered, `menu` the commands shown."""

    def __init__(self, chats: Chats, rates: Rates | None) -> None:
        self._chats = chats
        self._rates = rates
        self.queries: set[str] = set()
        self.menu: list[Json] = []
        self._known: dict[str, Callable[[Params], object]] = {
            "getMe": lambda _: chats.me(),
            "sendMessage": self._send,
            "sendMediaGroup": self._send_group,
            "editMessageText": self._edit,
            "editMessageCaption": self._edit_caption,
            "deleteMessage": self._delete,
            "sendChatAction": self._act,
            "setMessageReaction": self._react,
            "setMyCommands": self._commands,
            "answerCallbackQuery": self._answer,
            "getFile": self._get_file,
        }

    def do(self, method: str, params: Json) -> object:
        """The result of a call. Raises `Refused`."""
        asked = Params(params)
        if method in _UPLOADS:
            kind = _UPLOADS[method]
            need(len(asked.upload(kind)[1]) <= 50_000_000, "Request Entity Too Large")
            post = self._post(asked, text="caption", limit=1024)
            post.files, post.kind = (asked.upload(kind),), kind
            return self._chats.message(post)
        if method not in self._known:
            raise Refused("Not Found: method not found", status=404)
        return self._known[method](asked)

    def _send(self, params: Params) -> object:
        return self._chats.message(self._post(params, text="text", limit=4096))

    def _post(self, params: Params, *, text: str, limit: int) -> Posted:
        """Check and place a message. Nothing stands there when it is refused."""
        room = self._room(params)
        plain, spans = _worded(params, text, limit=limit)
        need(plain or text == "caption", "Bad Request: message text is empty")
        thread = params.integer("message_thread_id", 0)
        need(not thread or thread in room.topics, "Bad Request: message thread not found")
        reply = params.of("reply_parameters", Json) or {}
        answered = msgspec.convert(reply.get("message_id", 0), int)
        if answered and answered not in room.posts:
            need(reply.get("allow_sending_without_reply"), "Bad Request: message to be replied not found")
            answered = 0
        keyboard = _keyboard(params)
        if self._rates is not None:
            self._rates.check(room.id)
        options = params.of("link_preview_options", Json) or {}
        post = Posted(
            id=room.next_id(),
            chat=room.id,
            sender=ME,
            text=plain,
            markup=params.text(text),
            spans=spans,
            thread=thread,
            topic=bool(thread),
            reply_to=answered,
            keyboard=keyboard,
            quiet=bool(params.of("disable_notification", bool)),
            preview=not options.get("is_disabled"),
        )
        room.posts[post.id] = post
        return post

    def _send_group(self, params: Params) -> object:
        media = params.of("media", list[dict[str, str]]) or []
        need(2 <= len(media) <= 10, "Bad Request: wrong number of items in the media group")
        kinds = {one["type"] for one in media}
        need(kinds <= {"photo", "video"} or len(kinds) == 1, "Bad Request: media of these types cannot be mixed")
        files = [params.upload(one["media"].removeprefix("attach://")) for one in media]
        posts: list[Posted] = []
        for one, file in zip(media, files, strict=True):
            parts = {key: params.of(key, object) for key in ("chat_id", "message_thread_id", "reply_parameters")}
            own: Json = {key: value for key, value in {**parts, **one}.items() if value is not None}
            post = self._post(Params(own), text="caption", limit=1024)
            post.files, post.kind, post.album = (file,), one["type"], f"album-{media[0]['media']}"
            posts.append(post)
        return [self._chats.message(post) for post in posts]

    def _edit(self, params: Params) -> object:
        post = self._own(params, "message to edit not found")
        need(not post.files, "Bad Request: there is no text in the message to edit")
        return self._reworded(params, post, text="text", limit=4096)

    def _edit_caption(self, params: Params) -> object:
        return self._reworded(params, self._own(params, "message to edit not found"), text="caption", limit=1024)

    def _reworded(self, params: Params, post: Posted, *, text: str, limit: int) -> object:
        plain, spans = _worded(params, text, limit=limit)
        need(plain or text == "caption", "Bad Request: message text is empty")
        keyboard = _keyboard(params)
        same = (plain, spans, keyboard) == (post.text, post.spans, post.keyboard)
        need(not same, "Bad Request: message is not modified: specified new message content is the same")
        post.text, post.spans, post.keyboard, post.edits = plain, spans, keyboard, post.edits + 1
        post.markup = params.text(text)
        return self._chats.message(post)

    def _delete(self, params: Params) -> object:
        post = self._own(params, "message to delete not found")
        del self._chats.rooms[post.chat].posts[post.id]
        return True

    def _act(self, params: Params) -> object:
        room = self._room(params)
        need(params.text("action") in ("typing", "upload_document"), "Bad Request: wrong parameter action in request")
        thread = params.integer("message_thread_id", 0)
        need(not thread or thread in room.topics, "Bad Request: message thread not found")
        room.typed.append(thread)
        return True

    def _react(self, params: Params) -> object:
        post = self._room(params).post(params.integer("message_id"), about="message to react not found")
        reaction = params.of("reaction", list[dict[str, str]]) or []
        need(len(reaction) <= 1, "Bad Request: REACTIONS_TOO_MANY")
        emoji = reaction[0]["emoji"] if reaction else ""
        need(not emoji or emoji in _REACTIONS, "Bad Request: REACTION_INVALID")
        post.reaction = emoji
        return True

    def _commands(self, params: Params) -> object:
        menu = params.of("commands", list[Json]) or []
        need(len(menu) <= 100, "Bad Request: BOT_COMMANDS_TOO_MUCH")
        for one in menu:
            need(re.fullmatch(r"[a-z0-9_]{1,32}", str(one.get("command", ""))), "Bad Request: BOT_COMMAND_INVALID")
            need(1 <= len(str(one.get("description", ""))) <= 256, "Bad Request: BOT_COMMAND_DESCRIPTION_INVALID")
        self.menu = menu
        return True

    def _answer(self, params: Params) -> object:
        query = params.text("callback_query_id")
        need(query in self.queries, "Bad Request: query is too old and response timeout expired or query ID is invalid")
        self.queries.discard(query)
        return True

    def _get_file(self, params: Params) -> object:
        file_id = params.text("file_id")
        need(file_id in self._chats.stored, "Bad Request: invalid file_id")
        size = len(self._chats.stored[file_id])
        need(size <= 20 << 20, "Bad Request: file is too big")
        return {"file_id": file_id, "file_unique_id": file_id, "file_size": size, "file_path": file_id}

    def _room(self, params: Params) -> Room:
        return self._chats.room(params.of("chat_id", int))

    def _own(self, params: Params, missing: str) -> Posted:
        post = self._room(params).post(params.integer("message_id"), about=missing)
        need(post.sender == ME, "Bad Request: message can't be edited")
        return post


def _worded(params: Params, name: str, *, limit: int) -> tuple[str, tuple[Span, ...]]:
    """The text that people see and its entities; its length counts after the markup was read."""
    mode = params.text("parse_mode")
    need(mode in ("", "HTML"), "Bad Request: unsupported parse_mode")
    text, spans = parse(params.text(name)) if mode else (params.text(name), ())
    about = "message is too long" if name == "text" else "message caption is too long"
    need(units(text) <= limit, f"Bad Request: {about}")
    return text.strip(), spans


def _keyboard(params: Params) -> tuple[tuple[str, str], ...]:
    markup = params.of("reply_markup", dict[str, list[list[dict[str, str]]]]) or {}
    buttons = [button for row in markup.get("inline_keyboard", []) for button in row]
    for button in buttons:
        need(button.get("text"), "Bad Request: button text is empty")
        need(1 <= len(button.get("callback_data", "").encode()) <= 64, "Bad Request: BUTTON_DATA_INVALID")
    return tuple((button["text"], button["callback_data"]) for button in buttons)
