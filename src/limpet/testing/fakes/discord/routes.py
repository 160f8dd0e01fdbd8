"""The routes of the fake REST API, each with the checks of the real one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import unquote

import msgspec

from limpet.testing.fakes.discord.rooms import APP, ME, Json, Posted, Room, Rooms
from limpet.testing.fakes.shape import Refused, fields, items, need, text

_Kind = TypeVar("_Kind")
Files = tuple[tuple[str, bytes], ...]
_LARGEST = 10 << 20
_KNOWN = frozenset(
    "content nonce enforce_nonce allowed_mentions components flags message_reference attachments".split()  # noqa: SIM905
)


def _form(about: str) -> Refused:
    return Refused(f"Invalid Form Body: {about}", code="50035")


class Routes:
    """What a bot can ask. `open` are interactions that wait to be answered, with the time they were made."""

    def __init__(self, rooms: Rooms, now: Callable[[], float]) -> None:
        self._rooms = rooms
        self._now = now
        self.open: dict[str, tuple[str, float]] = {}
        self.answered: list[Json] = []
        self.menu: list[Json] = []
        self._nonces: dict[str, tuple[float, Posted]] = {}
        self._table: tuple[tuple[str, str, Callable[..., object]], ...] = (
            ("GET", r"/applications/@me", lambda: {"id": APP, "name": "helper", "flags": 0}),
            ("GET", r"/channels/(\d+)", self._place),
            ("GET", r"/guilds/(\d+)/members/(\d+)", self._member),
            ("GET", r"/channels/(\d+)/messages/(\d+)", self._get),
            ("DELETE", r"/channels/(\d+)/messages/(\d+)", self._delete),
            ("POST", r"/channels/(\d+)/typing", self._type),
            ("PUT", r"/channels/(\d+)/messages/(\d+)/reactions/([^/]+)/@me", self._react),
            ("DELETE", r"/channels/(\d+)/messages/(\d+)/reactions/([^/]+)/@me", self._unreact),
        )

    def do(self, method: str, path: str, *, query: dict[str, str], body: object, files: Files) -> object:
        """What a call answers; None: nothing (204). Raises `Refused`."""
        for one, pattern, act in self._table:
            found = re.fullmatch(pattern, path)
            if found is not None and one == method:
                return act(*found.groups())
        if found := re.fullmatch(r"/channels/(\d+)/messages", path):
            room = self._rooms.room(found[1])
            return self._history(room, query) if method == "GET" else self._send(room, _object(body), files)
        if (found := re.fullmatch(r"/channels/(\d+)/messages/(\d+)", path)) and method == "PATCH":
            return self._edit(self._rooms.room(found[1]).post(found[2]), _object(body))
        if found := re.fullmatch(r"/interactions/(\d+)/(\w+)/callback", path):
            return self._answer(found[1], found[2], _object(body))
        if path == f"/applications/{APP}/commands" and method == "PUT":
            return self._commands(body)
        raise Refused("404: Not Found", status=404, code="0")

    def _place(self, id: str) -> Json:
        return self._rooms.place(self._rooms.room(id))

    def _member(self, guild: str, user: str) -> Json:
        if guild not in {room.guild for room in self._rooms.rooms.values()} or user not in self._rooms.people:
            raise Refused("Unknown Member", status=404, code="10007")
        return self._rooms.member(user) | {"user": self._rooms.user(user)}

    def _history(self, room: Room, query: dict[str, str]) -> list[Json]:
        limit, after = int(query.get("limit", "50")), int(query.get("after", "0"))
        need(1 <= limit <= 100, "Invalid Form Body: limit")
        found = [post for id, post in room.posts.items() if int(id) > after][:limit]
        return [self._rooms.message(post, live=False) for post in reversed(found)]

    def _send(self, room: Room, body: Json, files: Files) -> Json:
        need(set(body) <= _KNOWN, f"Invalid Form Body: {set(body) - _KNOWN}")
        content, buttons = self._checked(body)
        if not content.strip() and not files:
            raise Refused("Cannot send an empty message", code="50006")
        _check_files(body, files)
        nonce = body.get("nonce", "")
        if not isinstance(nonce, str) or len(nonce) > 25:
            raise _form("nonce must be 25 or fewer in length")
        known = self._nonces.get(nonce) if body.get("enforce_nonce") and nonce else None
        if known is not None and self._now() - known[0] < 180:
            return self._rooms.message(known[1], live=False)
        post = Posted(id=self._rooms.next_id(), place=room.id, author=ME, text=content, files=files, buttons=buttons)
        post.reply_to, post.nonce, post.flags = self._answers(room, body), nonce, _flags(body)
        room.posts[post.id], room.last = post, post.id
        self._nonces[nonce] = (self._now(), post)
        return self._rooms.message(post, live=False)

    def _answers(self, room: Room, body: Json) -> str:
        reference = fields(body.get("message_reference", {}), "message_reference")
        answers = text(reference.get("message_id", ""), "message_id")
        if answers and answers not in room.posts:
            if reference.get("fail_if_not_exists", True):
                raise _form("message_reference: Unknown message")
            return ""
        return answers

    def _checked(self, body: Json) -> tuple[str, tuple[tuple[str, str], ...]]:
        content = text(body.get("content", ""), "content")
        if len(content) > 2_000:
            raise _form("content must be 2000 or fewer in length.")
        mentions = fields(body.get("allowed_mentions"), "allowed_mentions")
        need(mentions.get("parse") == [], "the fake takes only messages that call nobody")
        return content, _buttons(body.get("components", []))

    def _edit(self, post: Posted, body: Json) -> Json:
        self._ours(post)
        content, post.buttons = self._checked(body)
        need(content or post.files, "Cannot send an empty message")
        post.text = content
        return self._rooms.message(post, live=False)

    def _get(self, room: str, id: str) -> Json:
        return self._rooms.message(self._rooms.room(room).post(id), live=False)

    def _delete(self, room: str, id: str) -> None:
        self._ours(self._rooms.room(room).post(id))
        del self._rooms.rooms[room].posts[id]

    def _ours(self, post: Posted) -> None:
        if post.author != ME:
            raise Refused("Cannot edit a message authored by another user", status=403, code="50005")

    def _type(self, room: str) -> None:
        self._rooms.room(room).typed += 1

    def _react(self, room: str, id: str, emoji: str) -> None:
        post, name = self._rooms.room(room).post(id), unquote(emoji)
        if name.isascii():
            raise Refused("Unknown Emoji", code="10014")
        post.reactions = tuple(dict.fromkeys((*post.reactions, (ME, name))))

    def _unreact(self, room: str, id: str, emoji: str) -> None:
        post = self._rooms.room(room).post(id)
        post.reactions = tuple(one for one in post.reactions if one != (ME, unquote(emoji)))

    def _answer(self, id: str, token: str, body: Json) -> None:
        """Within 3 s and once; type 6 only for buttons."""
        kind, made = self.open.pop(id, ("", 0.0))
        if not kind or token != f"token{id}" or self._now() - made > 3:
            raise Refused("Unknown interaction", status=404, code="10062")
        need(body.get("type") == 6 if kind == "button" else body.get("type") in (4, 5), "Invalid Form Body: type")
        self.answered.append(body)

    def _commands(self, body: object) -> list[Json]:
        self.menu = []
        for command in items(body, "commands"):
            one = fields(command, "command")
            if not re.fullmatch(r"[-_a-z0-9]{1,32}", text(one.get("name"), "name")):
                raise _form("name: Command name is invalid")
            if not 1 <= len(text(one.get("description"), "description")) <= 100:
                raise _form("description must be between 1 and 100 in length")
            self.menu.append(one | {"id": self._rooms.next_id()})
        need(len(self.menu) <= 100, "Maximum number of application commands reached")
        return self.menu


def _object(body: object) -> Json:
    if body is None:
        raise Refused("Cannot send an empty message", code="50006")
    return fields(body, "body")


def _flags(body: Json) -> int:
    flags = body.get("flags", 0)
    if not isinstance(flags, int) or flags & ~(1 << 2 | 1 << 12):
        raise _form("flags")
    return flags


def _check_files(body: Json, files: Files) -> None:
    told = [fields(one, "attachment") for one in items(body.get("attachments", []), "attachments")]
    need([one.get("id") for one in told] == list(range(len(files))), "Invalid Form Body: attachments")
    need([one.get("filename") for one in told] == [name for name, _ in files], "Invalid Form Body: filename")
    if any(len(data) > _LARGEST for _, data in files):
        raise Refused("Request entity too large", status=413, code="40005")
    need(len(files) <= 10, "Invalid Form Body: Must be 10 or fewer in length.")


def _buttons(components: object) -> tuple[tuple[str, str], ...]:
    """Labels with what they say: rows of one to five buttons, at most five of them, ids only once."""
    found: list[tuple[str, str]] = []
    rows = items(components, "components")
    need(len(rows) <= 5, "Invalid Form Body: components: Must be 5 or fewer in length.")
    for row in rows:
        one = fields(row, "row")
        need(one.get("type") == 1, "Invalid Form Body: components.type")
        buttons = [fields(button, "button") for button in items(one.get("components"), "components")]
        need(1 <= len(buttons) <= 5, "Invalid Form Body: components: Must be between 1 and 5 in length.")
        for button in buttons:
            need(button.get("type") == 2 and button.get("style") in (1, 2, 3, 4), "Invalid Form Body: style")
            label, custom = text(button.get("label"), "label"), text(button.get("custom_id"), "custom_id")
            need(1 <= len(label) <= 80 and 1 <= len(custom) <= 100, "Invalid Form Body: label")
            found.append((label, custom))
    need(len({custom for _, custom in found}) == len(found), "Component custom id cannot be duplicated")
    return tuple(found)


def decode(raw: bytes) -> object:
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError:
        raise Refused("The request body contains invalid JSON.", code="50109") from None
