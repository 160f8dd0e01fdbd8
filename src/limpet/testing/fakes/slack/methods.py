"""The methods of the fake Web API, each with the checks of the real one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

import msgspec

from limpet.testing.fakes.shape import Refused, fields, items, text
from limpet.testing.fakes.slack.rooms import BOT, ME, TEAM, Json, Posted, Room, Rooms

_Kind = TypeVar("_Kind")
SCOPES = frozenset(
    "app_mentions:read channels:history channels:read chat:write commands files:read files:write groups:history "  # noqa: SIM905
    "groups:read im:history im:read mpim:history mpim:read reactions:read reactions:write users:read".split()
)
_NEEDED = {
    "chat.postMessage": "chat:write",
    "chat.update": "chat:write",
    "chat.delete": "chat:write",
    "reactions.add": "reactions:write",
    "reactions.remove": "reactions:write",
    "reactions.get": "reactions:read",
    "users.info": "users:read",
    "conversations.info": "channels:read",
    "users.conversations": "channels:read",
    "conversations.history": "channels:history",
    "conversations.replies": "channels:history",
    "files.getUploadURLExternal": "files:write",
    "files.completeUploadExternal": "files:write",
}


class Params:
    """Parameters as forms carry them: text, with numbers and lists in JSON."""

    def __init__(self, found: dict[str, str]) -> None:
        self._found = found

    def text(self, name: str) -> str:
        return self._found.get(name, "")

    def json(self, name: str) -> object:
        """Raises `Refused` when the parameter is no JSON."""
        try:
            return msgspec.json.decode(self._found[name]) if self._found.get(name) else None
        except msgspec.DecodeError:
            raise Refused("invalid_arguments") from None

    def number(self, name: str, default: int) -> int:
        found = self.json(name)
        return found if isinstance(found, int) else default


class Methods:
    """What an app can do. `told` is given what people (and the app itself) then hear of."""

    def __init__(self, rooms: Rooms, *, scopes: set[str]) -> None:
        self._rooms = rooms
        self.scopes = scopes
        self.events: list[Json] = []
        self._slots: dict[str, tuple[str, int]] = {}
        self._laid: dict[str, tuple[str, bytes]] = {}
        self._known: dict[str, Callable[[Params], Json]] = {
            "auth.test": lambda _: {"user_id": ME, "team_id": TEAM, "bot_id": BOT, "user": "helper"},
            "chat.postMessage": self._post,
            "chat.update": self._update,
            "chat.delete": self._delete,
            "reactions.add": self._react,
            "reactions.remove": self._unreact,
            "reactions.get": self._reactions,
            "users.info": self._user,
            "users.conversations": self._conversations,
            "conversations.info": self._info,
            "conversations.history": self._history,
            "conversations.replies": self._replies,
            "files.getUploadURLExternal": self._slot,
            "files.completeUploadExternal": self._complete,
        }

    def do(self, method: str, params: dict[str, str]) -> Json:
        """What a call answers, beside `ok`. Raises `Refused` with Slack's word as its text."""
        if method not in self._known:
            raise Refused("unknown_method")
        needed = _NEEDED.get(method, "")
        if needed and needed not in self.scopes:
            raise Refused("missing_scope", code=needed)
        return self._known[method](Params(params))

    def lay(self, slot: str, data: bytes) -> None:
        """The bytes of a file come to the address that was given for them."""
        name, length = self._slots[slot]
        if length != len(data):
            raise Refused("length does not match", status=400)
        self._laid[slot] = (name, data)

    def _post(self, params: Params) -> Json:
        room = self._rooms.room(params.text("channel"), write=True)
        post = Posted(ts=self._rooms.next_ts(), room=room.id, user=ME, text=params.text("text"))
        _fill(post, params, most=40_000)
        post.thread = self._thread(room, params)
        self._tell(room, post)
        return {"channel": room.id, "ts": post.ts, "message": self._rooms.message(post)}

    def _tell(self, room: Room, post: Posted) -> None:
        """An app hears its own messages too."""
        room.posts[post.ts] = post
        self.events.append(self._rooms.event(post))

    def _thread(self, room: Room, params: Params) -> str:
        thread = params.text("thread_ts")
        if thread and (thread not in room.posts or room.posts[thread].thread):
            raise Refused("thread_not_found")
        return thread

    def _update(self, params: Params) -> Json:
        room = self._rooms.room(params.text("channel"), write=True)
        post = room.post(params.text("ts"))
        if post.user != ME:
            raise Refused("cant_update_message")
        _fill(post, params, most=4_000)
        post.text, post.edited = params.text("text"), self._rooms.next_ts()
        changed: Json = {"type": "message", "subtype": "message_changed", "channel": room.id, "hidden": True}
        self.events.append(changed | {"ts": post.edited, "message": self._rooms.message(post)})
        return {"channel": room.id, "ts": post.ts, "text": post.text}

    def _delete(self, params: Params) -> Json:
        room = self._rooms.room(params.text("channel"))
        if room.post(params.text("ts")).user != ME:
            raise Refused("cant_delete_message")
        del room.posts[params.text("ts")]
        return {}

    def _react(self, params: Params) -> Json:
        post, name = self._reacted(params)
        if (ME, name) in post.reactions:
            raise Refused("already_reacted")
        post.reactions = (*post.reactions, (ME, name))
        return {}

    def _unreact(self, params: Params) -> Json:
        post, name = self._reacted(params)
        if (ME, name) not in post.reactions:
            raise Refused("no_reaction")
        post.reactions = tuple(one for one in post.reactions if one != (ME, name))
        return {}

    def _reacted(self, params: Params) -> tuple[Posted, str]:
        name = params.text("name")
        if not re.fullmatch(r"[a-z0-9_+-]+", name):
            raise Refused("invalid_name")
        return self._rooms.room(params.text("channel")).post(params.text("timestamp")), name

    def _reactions(self, params: Params) -> Json:
        post = self._rooms.room(params.text("channel")).post(params.text("timestamp"))
        return {"type": "message", "message": self._rooms.message(post)}

    def _user(self, params: Params) -> Json:
        id = params.text("user")
        if id not in self._rooms.people:
            raise Refused("user_not_found")
        name = self._rooms.people[id]
        return {"user": {"id": id, "name": name, "profile": {"display_name": "", "real_name": name.title()}}}

    def _info(self, params: Params) -> Json:
        return {"channel": _chat(self._rooms.room(params.text("channel")))}

    def _conversations(self, params: Params) -> Json:
        found = [_chat(room) for room in self._rooms.rooms.values() if room.joined and not room.archived]
        return {"channels": found, "response_metadata": {"next_cursor": ""}}

    def _history(self, params: Params) -> Json:
        room = self._rooms.room(params.text("channel"))
        return self._page(params, [post for post in room.posts.values() if not post.thread])

    def _replies(self, params: Params) -> Json:
        room, root = self._rooms.room(params.text("channel")), params.text("ts")
        if root not in room.posts:
            raise Refused("thread_not_found")
        return self._page(params, [post for post in room.posts.values() if root in (post.ts, post.thread)])

    def _page(self, params: Params, posts: list[Posted]) -> Json:
        """Newest first, from the cursor on."""
        newer = [post for post in posts if post.ts > params.text("oldest")]
        newer.sort(key=lambda post: post.ts, reverse=True)
        start, limit = int(params.text("cursor") or 0), params.number("limit", 100)
        rest = str(start + limit) if len(newer) > start + limit else ""
        page = [self._rooms.message(post) for post in newer[start : start + limit]]
        return {"messages": page, "has_more": bool(rest), "response_metadata": {"next_cursor": rest}}

    def _slot(self, params: Params) -> Json:
        length = params.number("length", 0)
        if not params.text("filename") or length <= 0:
            raise Refused("invalid_arguments")
        slot = f"F{len(self._slots) + 1}"
        self._slots[slot] = (params.text("filename"), length)
        return {"file_id": slot, "upload_url": f"{self._rooms.files}-upload/{slot}"}

    def _complete(self, params: Params) -> Json:
        room = self._rooms.room(params.text("channel_id"), write=True)
        ids = [text(fields(one, "file").get("id"), "id") for one in items(params.json("files"), "files")]
        if not ids or any(id not in self._laid for id in ids):
            raise Refused("file_not_found")
        post = Posted(ts=self._rooms.next_ts(), room=room.id, user=ME, text=params.text("initial_comment"))
        post.files = tuple(self._laid.pop(id) for id in ids)
        _fill(post, params, most=40_000)
        if post.text:
            post.buttons = post.sections = ()  # blocks are ignored beside a comment
        post.text = post.text or "\n".join(post.sections)
        post.thread = self._thread(room, params)
        self._tell(room, post)
        return {"files": [{"id": id, "title": ""} for id in ids]}


def _chat(room: Room) -> Json:
    return {"id": room.id, "is_im": True} if room.id.startswith("D") else {"id": room.id, "name": room.name}


def _fill(post: Posted, params: Params, *, most: int) -> None:
    """Check and take the text and blocks of a message."""
    said = params.text("text")
    if len(said) > most:
        raise Refused("msg_too_long")
    post.sections, post.buttons = _blocks(params.json("blocks") or [])
    if not (said.strip() or post.sections or post.files):
        raise Refused("no_text")


def _blocks(blocks: object) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """The texts of sections and the buttons of actions. Raises `Refused` for what Block Kit does not take."""
    sections: list[str] = []
    buttons: list[tuple[str, str]] = []
    names: list[object] = []
    for one in items(blocks, "blocks"):
        block = fields(one, "block")
        if block.get("type") == "section":
            said = fields(block.get("text"), "text")
            _need(said.get("type") in ("mrkdwn", "plain_text") and 1 <= len(text(said.get("text"), "text")) <= 3_000)
            sections.append(text(said.get("text"), "text"))
            continue
        _need(block.get("type") == "actions")
        elements = [fields(element, "element") for element in items(block.get("elements"), "elements")]
        _need(1 <= len(elements) <= 25)
        for element in elements:
            label = fields(element.get("text"), "text")
            _need(element.get("type") == "button" and label.get("type") == "plain_text")
            shown, value = text(label.get("text"), "text"), text(element.get("value"), "value")
            _need(1 <= len(shown) <= 75 and len(value) <= 2_000 and len(text(element.get("action_id"), "id")) <= 255)
            names.append(element.get("action_id"))
            buttons.append((shown, value))
    _need(len(set(map(str, names))) == len(names))
    return tuple(sections), tuple(buttons)


def _need(condition: bool) -> None:
    if not condition:
        raise Refused("invalid_blocks")
