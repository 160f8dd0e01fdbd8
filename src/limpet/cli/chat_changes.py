"""What a call changed in files, and what one that waits for a word would change: unified diffs, from the log."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from limpet.assistant.services import Services
from limpet.errors import ToolError
from limpet.store import entries, sessions
from limpet.store.sql import Connection
from limpet.tools.deferred import unwrapped
from limpet.tools.edits import Edit, apply
from limpet.tools.files_edit import as_bytes, as_text, diff_of
from limpet.tools.paths import Root
from limpet.types.approval import Approval
from limpet.types.entry import AssistantEntry, Entry, ToolResultEntry
from limpet.types.message import ToolCall

LOOKED = 400
"""The newest entries of a log among which a call is sought."""
MOST = 80
"""Lines of a diff that are shown."""


class _Edit(Struct):
    path: str
    old: str = ""
    new: str = ""
    replace_all: bool = False
    edits: list[Edit] = []


class _Write(Struct):
    path: str
    content: str


class _Patch(Struct):
    patch: str


def changed(services: Services, key: str, call: str) -> str:
    """What the call named `call` of the live session under `key` has changed; empty for nothing."""
    assistant, _, index = call.rpartition(".")

    def look(connection: Connection) -> list[Entry]:
        live = sessions.live(connection, key)
        return _newest(connection, live.id) if live else []

    for entry in reversed(services.store.read(look)):
        found = entry.payload
        if isinstance(found, ToolResultEntry) and (found.assistant, str(found.index)) == (assistant, index):
            return _cut(found.result.details.diff)
    return ""


def proposed(services: Services, approval: Approval) -> str:
    """What a call that waits for a word would change as things are; empty when it changes no text."""
    found = services.store.read(lambda connection: _newest(connection, approval.session))
    call = _call(found, approval.wanted.call)
    if call is None:
        return ""
    try:
        return _cut(services.redactor.redact(_preview(unwrapped(call), services.workspace)))
    except (msgspec.DecodeError, ToolError, OSError):  # what cannot be told is said by the call itself when it runs
        return ""


def _newest(connection: Connection, session: str) -> list[Entry]:
    return entries.load(connection, session, after=max(0, entries.last_seq(connection, session) - LOOKED))


def _call(found: list[Entry], name: str) -> ToolCall | None:
    assistant, _, index = name.rpartition(".")
    for entry in reversed(found):
        if entry.id == assistant and isinstance(entry.payload, AssistantEntry) and index.isdecimal():
            return entry.payload.message.calls[int(index)]
    return None


def _preview(call: ToolCall, workspace: str) -> str:
    match call.name:
        case "write_file":
            wanted = msgspec.json.decode(call.arguments, type=_Write)
            return diff_of(_text(workspace, wanted.path), wanted.content, wanted.path)
        case "edit_file":
            edit = msgspec.json.decode(call.arguments, type=_Edit)
            before = _text(workspace, edit.path)
            after, _ = apply(before, edit.edits or [Edit(edit.old, edit.new, edit.replace_all)])
            return diff_of(before, after, edit.path)
        case "apply_patch":
            return msgspec.json.decode(call.arguments, type=_Patch).patch
        case _:
            return ""


def _text(workspace: str, path: str) -> str:
    """A file of the workspace as it is; empty when there is none. Raises `ToolError`."""
    with Root(workspace) as root:
        spot = root.target(path)
        return "" if spot.kind == "missing" else as_text(as_bytes(spot), spot.relative)[1]


def _cut(diff: str) -> str:
    lines = diff.splitlines()
    more = [f"[… and {len(lines) - MOST} more lines]"] if len(lines) > MOST else []
    return "\n".join([*lines[:MOST], *more])
