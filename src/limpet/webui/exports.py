"""A conversation as a file."""

from __future__ import annotations

from typing import Literal

from limpet.config.agents import settings_of
from limpet.config.paths import find_workspace
from limpet.session.export import jsonl, markdown
from limpet.session.openclaw import openclaw
from limpet.session.tree import path
from limpet.store import blobs, entries
from limpet.webui.chats import session_of
from limpet.webui.desk import Desk

Form = Literal["markdown", "jsonl", "openclaw"]
FORMS: tuple[Form, ...] = ("markdown", "jsonl", "openclaw")
SUFFIX: dict[Form, str] = {"markdown": "md", "jsonl": "jsonl", "openclaw": "openclaw.jsonl"}


async def export(desk: Desk, session: str, form: Form) -> bytes:
    """What `limpet sessions export` writes. Raises `InputError`."""
    row = session_of(desk, session)
    found = desk.store.read(lambda connection: entries.load(connection, row.id))
    match form:
        case "jsonl":
            text = jsonl(found)
        case "openclaw":
            folder = find_workspace(settings_of(desk.agents.settings, row.agent).agent.workspace, desk.home)
            text = openclaw(row, found, folder=str(folder), read=lambda blob: blobs.read(str(desk.home.blobs), blob))
        case _:
            text = markdown(path(found))
    return text.encode()
