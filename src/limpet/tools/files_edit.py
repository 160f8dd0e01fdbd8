"""`edit_file`: replace parts of a text file; everything else stays byte for byte."""

from __future__ import annotations

from difflib import unified_diff
from typing import Annotated

from limpet.errors import ToolError
from limpet.toolkit.schema import tool
from limpet.toolkit.truncate import head
from limpet.tools.disk import check_unchanged, digest, judged, replace
from limpet.tools.edits import Edit, apply
from limpet.tools.paths import Root, Spot, missing, read_bytes
from limpet.tools.sniff import what_binary
from limpet.types.ports import ToolContext
from limpet.types.tool import Details, ToolResult, text_result

_BOM = b"\xef\xbb\xbf"
_LARGEST = 16 * 1024 * 1024
DIFF_LINES, DIFF_CHARS = 80, 4_000
"""How much of a diff a model is shown."""


@tool(effect="file", writes=("path",), brief="Replace text in a file.")
async def edit_file(
    context: ToolContext,
    path: str,
    old: Annotated[str, "text as it stands, unique"] = "",
    new: str = "",
    replace_all: bool = False,
    edits: Annotated[list[Edit] | None, "several at once, instead of old/new"] = None,
) -> ToolResult:
    """Replace text in a file: old must occur exactly once (or set replace_all). Line ends and encoding are kept."""
    wanted = _wanted(old, new, replace_all, edits)
    with Root(context.workspace, veil=context.veil) as root:
        spot = root.target(path)
        if spot.kind == "missing":
            raise missing(path)
        before = as_bytes(spot)
        check_unchanged(spot, digest(before), context)
        mark, text = as_text(before, spot.relative)
        after, lines = apply(text, wanted)
        data = judged(spot, before, mark + after.encode("utf-8", "surrogateescape"), context) or b""
        after = as_text(data, spot.relative)[1]
        intent = await replace(root, spot, data, before=before, context=context)
    diff = diff_of(text, after, spot.relative)
    shown = head(diff, lines=DIFF_LINES, chars=DIFF_CHARS)
    more = "" if shown.whole else "[The rest of the diff is left out.]"
    where = ", ".join(str(line) for line in lines[:20])
    did = f"edited {spot.relative}: {len(lines)} replacement{'s' * (len(lines) != 1)} (line {where})"
    return text_result(
        f"{did}\n{shown.head}{more}",
        details=Details(summary=did, path=intent.path, sha256=intent.after, diff=diff),
    )


def _wanted(old: str, new: str, replace_all: bool, edits: list[Edit] | None) -> list[Edit]:
    if edits and old:
        raise ToolError("give either old and new, or edits, not both; nothing was changed")
    return edits or [Edit(old, new, replace_all)]


def as_bytes(spot: Spot) -> bytes:
    """The bytes of a file to be edited, of a very large one only so many as show that. Raises `ToolError`."""
    if spot.kind == "folder":
        raise ToolError(f"{spot.relative!r} is a folder")
    return read_bytes(spot, limit=_LARGEST + 1)


def as_text(data: bytes, name: str) -> tuple[bytes, str]:
    """The byte order mark of a file (or nothing) and its text, of which every byte can be given back.

    Raises `ToolError` for what cannot be edited as text.
    """
    _check_editable(data, name)
    mark = _BOM if data.startswith(_BOM) else b""
    return mark, data[len(mark) :].decode("utf-8", "surrogateescape")


def _check_editable(data: bytes, name: str) -> None:
    if len(data) > _LARGEST:
        raise ToolError(f"{name} is over {_LARGEST:,} bytes", hint="Change it with exec (sed, python3).")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ToolError(f"{name} is UTF-16", hint="Convert it to UTF-8 with exec (iconv) first.")
    kind = what_binary(data)
    if kind:
        raise ToolError(f"{name} is not text: {kind}")


def diff_of(before: str, after: str, name: str) -> str:
    """Unified diff with 4 lines of context. Line ends and stray bytes are not shown."""
    lines = unified_diff(_lines(before), _lines(after), f"a/{name}", f"b/{name}", n=4, lineterm="")
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace").decode("utf-8")


def _lines(text: str) -> list[str]:
    lines = text.replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines
