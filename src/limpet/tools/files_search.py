"""`list_dir`, `find_files` and `grep`."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from subprocess import DEVNULL, PIPE
from typing import Annotated

import msgspec
from msgspec import Struct

from limpet.errors import ToolError
from limpet.toolkit.schema import tool
from limpet.toolkit.spill import capped, with_spill
from limpet.tools.paths import STATE, Root, Spot, missing, open_folder
from limpet.tools.search import Query
from limpet.types.ports import ToolContext
from limpet.types.tool import Details, ToolResult, text_result

ENTRIES = 500
FOUND = 1_000
MATCHES = 100
PATIENCE = 20.0
"""Seconds for a search."""

_CHILD = (
    "import sys, os; sys.path[:] = sys.argv.pop(1).split(os.pathsep); from limpet.tools import search; search.main()"
)


class _Answer(Struct):
    lines: list[str]
    matches: int
    more: bool
    fault: str


@tool(effect="pure", brief="List a folder.")
async def list_dir(context: ToolContext, path: str = ".") -> ToolResult:
    """List a folder: folders first, marked /, then files with their size in bytes."""
    with Root(context.workspace, veil=context.veil) as root:
        spot = root.find(path, reading=True)
        if spot.kind == "missing":
            raise missing(path)
        if spot.kind != "folder":
            raise ToolError(f"{path!r} is a file", hint="Read it with read_file.")
        with open_folder(spot) as fd:
            lines, total = _entries(fd, root, spot)
    text = "\n".join(lines) or f"[{spot.relative} is empty.]"
    if total > ENTRIES:
        text += f"\n[{ENTRIES} of {total} entries. Look for names with find_files, or list a folder below.]"
    return await _result(text, context, summary=f"listed {spot.relative}")


def _entries(folder: int, root: Root, spot: Spot) -> tuple[list[str], int]:
    """The first entries as they are shown, and how many there are in all."""
    with os.scandir(folder) as found:
        above = "" if spot.name == "." else f"{spot.relative}/"
        entries = [entry for entry in found if entry.name != STATE and not root.veil.hides(above + entry.name)]
    entries.sort(key=lambda entry: (not entry.is_dir(follow_symlinks=False), entry.name.casefold(), entry.name))
    return [_line(entry, folder) for entry in entries[:ENTRIES]], len(entries)


def _line(entry: os.DirEntry[str], folder: int) -> str:
    shown = entry.name.encode("utf-8", "backslashreplace").decode("utf-8").replace("\n", "\\n")
    if entry.is_dir(follow_symlinks=False):
        return f"{shown}/"
    try:
        if entry.is_symlink():
            return f"{shown} -> {os.readlink(entry.name, dir_fd=folder)}"
        return f"{shown}  {entry.stat(follow_symlinks=False).st_size:,}"
    except OSError:
        return shown


@tool(effect="pure", brief="Find files by name.")
async def find_files(
    context: ToolContext, pattern: Annotated[str, "glob such as *.py or src/**/*.md"], path: str = "."
) -> ToolResult:
    """Find files by a glob, beneath a folder. Files that .gitignore names are left out."""
    if not pattern:
        raise ToolError("the pattern is empty")
    with Root(context.workspace, veil=context.veil) as root:
        spot = _existing(root, path)
        if spot.kind != "folder":
            raise ToolError(f"{path!r} is a file, not a folder")
        answer = await _search(root, spot, _query(glob=pattern, limit=FOUND))
    if answer.fault:
        raise ToolError(f"{pattern!r} is not a glob: {answer.fault}")
    text = "\n".join(answer.lines) or f"[No file matches {pattern} in {path}; what .gitignore names is left out.]"
    if answer.more:
        text += f"\n[Only the first {FOUND:,}. Narrow the pattern or the path.]"
    return await _result(text, context, summary=f"{answer.matches} files match {pattern}")


@tool(effect="pure", brief="Search text in files.")
async def grep(
    context: ToolContext,
    pattern: Annotated[str, "regular expression"],
    path: str = ".",
    glob: Annotated[str, "only these files"] = "",
    ignore_case: bool = False,
    literal: bool = False,
    context_lines: int = 0,
) -> ToolResult:
    """Search lines in the files of a folder, or in one file. Files that .gitignore names are left out."""
    if not pattern:
        raise ToolError("the pattern is empty")
    query = _query(glob=glob, limit=MATCHES)
    query["pattern"] = re.escape(pattern) if literal else pattern
    query["ignore_case"] = ignore_case
    query["context"] = max(0, min(context_lines, 20))
    with Root(context.workspace, veil=context.veil) as root:
        answer = await _search(root, _existing(root, path), query)
    if answer.fault:
        raise ToolError(f"{pattern!r} is not a regular expression: {answer.fault}", hint="Set literal for plain text.")
    text = "\n".join(answer.lines) or f"[No line matches {pattern!r} in {path}.]"
    if answer.more:
        text += f"\n[Only the first {MATCHES} matches. Narrow the pattern, the path or the glob.]"
    return await _result(text, context, summary=f"{answer.matches} matches of {pattern}")


def _query(*, glob: str, limit: int) -> Query:
    return Query(
        pattern="", ignore_case=False, glob=glob, context=0, limit=limit, within="", file="", hidden=[], shown=[]
    )


def _existing(root: Root, path: str) -> Spot:
    spot = root.find(path, reading=True)
    if spot.kind == "missing":
        raise missing(path)
    return spot


async def _search(root: Root, spot: Spot, query: Query) -> _Answer:
    if spot.kind == "file":
        query["file"] = spot.relative
        return await _run(spot.folder, query)
    query["within"] = "" if spot.name == "." else f"{spot.relative}/"
    query["hidden"], query["shown"] = list(root.veil.hidden), list(root.veil.shown)
    return await _run(root.fd, query)


async def _run(folder: int, query: Query) -> _Answer:
    """Let a child search; it is killed when it takes too long or this is cancelled."""
    here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    places = os.pathsep.join([here, *(place for place in sys.path if os.path.isabs(place))])
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", "-c", _CHILD, places, str(folder)),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        pass_fds=(folder,),
        env={"LANG": "C.UTF-8"},
    )
    try:
        async with asyncio.timeout(PATIENCE):
            out, _ = await process.communicate(msgspec.json.encode(query))
    except TimeoutError:
        raise ToolError(f"the search took over {PATIENCE:g} s", hint="Narrow it, or use a simpler pattern.") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    try:
        return msgspec.json.decode(out, type=_Answer)
    except msgspec.DecodeError:
        raise ToolError(f"the search failed (exit code {process.returncode})") from None


async def _result(text: str, context: ToolContext, *, summary: str) -> ToolResult:
    text, spill, omitted = await capped(text, context, share=0.9)
    return text_result(text, details=with_spill(Details(summary=summary), spill=spill, omitted=omitted))
