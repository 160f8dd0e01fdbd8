"""The work of `find_files` and `grep`, in a child process: `python -I -S` and the standard library only.

A child, because a pattern can take for ever and Python's `re` cannot be interrupted, but a child can be killed;
and because a large tree must not hold up the agent. It inherits one descriptor: the workspace.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from itertools import islice
from typing import TypedDict

from limpet.tools.walk import glob_pattern, walk
from limpet.types.veil import hides

LINE = 500
"""Characters shown of a line."""
_LARGEST = 16 * 1024 * 1024
_SEARCHED_LINE = 100_000


class Query(TypedDict):
    """What to look for beneath `within` (`src/`, or empty for all), or in the one file at `file`.

    What lies in `hidden`, and in none of `shown`, is left out. Without `pattern`, the files that match `glob`.
    """

    pattern: str
    ignore_case: bool
    glob: str
    context: int
    limit: int
    within: str
    file: str
    hidden: list[str]
    shown: list[str]


class Answer(TypedDict):
    """Lines of output, how many matches they show, whether there are more, what was wrong with the pattern."""

    lines: list[str]
    matches: int
    more: bool
    fault: str


def run(folder: int, query: Query) -> Answer:
    """Search the open `folder`."""
    try:
        return _grep(folder, query) if query["pattern"] else _find(folder, query)
    except re.error as error:
        return Answer(lines=[], matches=0, more=False, fault=str(error))


def _find(folder: int, query: Query) -> Answer:
    lines: list[str] = []
    for _, _, path in _files(folder, query):
        if len(lines) == query["limit"]:
            return Answer(lines=lines, matches=len(lines), more=True, fault="")
        lines.append(_shown(path))
    return Answer(lines=lines, matches=len(lines), more=False, fault="")


def _grep(folder: int, query: Query) -> Answer:
    pattern = re.compile(query["pattern"], re.IGNORECASE if query["ignore_case"] else 0)
    out: list[str] = []
    matches = 0
    for parent, name, path in _files(folder, query):
        text = _text(parent, name)
        if text is None:
            continue
        lines = text.split("\n")
        room = query["limit"] - matches
        found = (index for index, line in enumerate(lines) if pattern.search(line[:_SEARCHED_LINE]))
        hits = list(islice(found, room + 1))
        if hits[:room]:
            out += _show(_shown(path), lines, hits[:room], query["context"])
        if len(hits) > room:
            return Answer(lines=out, matches=query["limit"], more=True, fault="")
        matches += len(hits)
    return Answer(lines=out, matches=matches, more=False, fault="")


def _files(folder: int, query: Query) -> Iterator[tuple[int, str, str]]:
    if query["file"]:
        yield folder, query["file"].rpartition("/")[2], query["file"]
        return
    glob = query["glob"].removeprefix("./")
    wanted = glob_pattern(glob if "/" in glob else f"**/{glob}") if glob else None
    within = query["within"]
    for parent, name, path in walk(folder, within=within):
        if hides(path, hidden=query["hidden"], shown=query["shown"]):
            continue
        if wanted is None or wanted.fullmatch(path) or wanted.fullmatch(path[len(within) :]):
            yield parent, name, path


def _shown(path: str) -> str:
    return path.encode("utf-8", "backslashreplace").decode("utf-8").replace("\n", "\\n")


def _text(folder: int, name: str) -> str | None:
    """The text of a file; None when it is large, binary or gone."""
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None
    with open(fd, "rb") as file:
        if os.fstat(fd).st_size > _LARGEST:
            return None
        data = file.read()
    if b"\0" in data[:8192]:
        return None
    return data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").replace("\r\n", "\n").removesuffix("\n")


def _show(path: str, lines: list[str], hits: list[int], context: int) -> list[str]:
    found = set(hits)
    shown = sorted({near for hit in hits for near in range(hit - context, hit + context + 1) if 0 <= near < len(lines)})
    out: list[str] = []
    last = -1
    for index in shown:
        if context and last >= 0 and index > last + 1:
            out.append("--")
        line = lines[index]
        cut = f"{line[:LINE]}… [{len(line)} characters]" if len(line) > LINE else line
        mark = ":" if index in found else "-"
        out.append(f"{path}{mark}{index + 1}{mark} {cut}")
        last = index
    return out


def main() -> None:
    """As a child: the query as JSON on standard input, the answer as JSON on standard output."""
    json.dump(run(int(sys.argv[1]), json.load(sys.stdin)), sys.stdout)
