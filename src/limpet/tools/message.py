"""`message`: text and files for this chat while the turn goes on, or for another one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated

from msgspec import structs

from limpet.errors import ToolError
from limpet.toolkit.schema import FunctionTool, tool
from limpet.tools.paths import Root, missing, read_bytes
from limpet.types.envelope import Attachment, Part
from limpet.types.ports import Outbound, ToolContext
from limpet.types.tool import ToolResult, text_result

MOST = 10
LARGEST = 50_000_000
"""Files of one message, bytes of one; a platform may take less."""
TERMINAL = "cli"


def make_message(outbound: Outbound) -> FunctionTool:
    """The tool over what knows the chats."""

    @tool(effect="row", brief="Send text or files to a chat.", sends=_goes_elsewhere)
    async def message(
        context: ToolContext,
        text: str = "",
        files: list[str] | None = None,
        to: Annotated[str, "owner, name or id"] = "",
    ) -> ToolResult:
        """Send text or files here now, or to another chat."""
        paths = files or []
        if not text.strip() and not paths:
            raise ToolError("there is nothing to send")
        if len(paths) > MOST:
            raise ToolError(f"at most {MOST} files go with one message")
        parts = outbound.parts(context.redactor.redact(text), to, session=context.session, call=context.key)
        attached = tuple([await _attachment(context, path) for path in paths])
        for part in parts:
            context.post(_with(part, attached))
        where = ", ".join(f"{part.address.channel} {part.address.chat}" for part in parts)
        return text_result(f"on its way to {where}; should it not arrive, you are told")

    return message


def _goes_elsewhere(values: Mapping[str, object]) -> bool:
    return bool(values.get("to"))


async def _attachment(context: ToolContext, path: str) -> Attachment:
    with Root(context.workspace, veil=context.veil) as root:
        spot = root.find(path, reading=True)
        if spot.kind == "missing":
            raise missing(path)
        if spot.kind != "file":
            raise ToolError(f"{path!r} is no file")
        data = read_bytes(spot, limit=LARGEST + 1)
    if len(data) > LARGEST:
        raise ToolError(f"{path!r} is larger than {LARGEST:,} bytes")
    import mimetypes  # reads the system's tables, only where something is sent

    name = os.path.basename(spot.relative)
    mime = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return Attachment(await context.blobs.put(data), name, mime, len(data))


def _with(part: Part, attached: tuple[Attachment, ...]) -> Part:
    """A terminal shows where files are; a chat gets them."""
    if part.address.channel == TERMINAL:
        names = "\n".join(f"[file {one.name}]" for one in attached)
        return structs.replace(part, text="\n".join(filter(None, (part.text, names))))
    return structs.replace(part, beside=structs.replace(part.beside, attachments=attached))
