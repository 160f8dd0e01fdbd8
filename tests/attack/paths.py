"""Every file tool on every path that leads, or might lead, out of the workspace (case C63 and beyond)."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from limpet.errors import LimpetError
from limpet.testing.context import tool_context
from limpet.toolkit.schema import FunctionTool
from limpet.tools.files_edit import edit_file
from limpet.tools.files_patch import apply_patch
from limpet.tools.files_read import read_file
from limpet.tools.files_search import find_files, grep, list_dir
from limpet.tools.files_write import delete_path, write_file
from limpet.tools.make_image import make_image
from limpet.types.ports import Media
from limpet.types.tool import ToolResult
from tests.attack.played import Played

MARK = "OUTSIDE-4711"
PATHS: Sequence[str] = (
    "leak/s.txt",
    "leak/./s.txt",
    "leak//s.txt",
    "leak/../out/s.txt",
    "../out/s.txt",
    "../abcdef/s.txt",
    "{w}/abcdef/s.txt",
    "{w}/out/s.txt",
    "{w}/abc/../out/s.txt",
    "~/x",
    "~root/x",
    "~",
    "@~/x",
    "new",
    "new/x",
    "sub/../../out/s.txt",
    "sub/../leak/s.txt",
    "missing/../../out/s.txt",
    "a\0b",
    "leak\0/s.txt",
    "\0",
    "..",
    "../",
    "../..",
    "/",
    "/etc/passwd",
    "//etc/passwd",
    "/etc/../etc/passwd",
    "/proc/self/root{w}/out/s.txt",
    "/proc/self/cwd/x",
    "/dev/stdin",
    "/dev/fd/0",
    "chain1/s.txt",
    "loop/x",
    "loop",
    "rootlink/{w}/out/s.txt",
    "proclink/root{w}/out/s.txt",
    "fdlink/s.txt",
    "pipe",
    "@../out/s.txt",
    "@{w}/out/s.txt",
    "file://{w}/out/s.txt",
    "..\\out\\s.txt",
    "%2e%2e/out/s.txt",
    "..%2fout/s.txt",
    ".. /out/s.txt",
    "\u2025/out/s.txt",
    "\uff0e\uff0e/out/s.txt",
    "..\u2215out\u2215s.txt",
    "sub/\u2024\u2024/\u2024\u2024/out/s.txt",
    "leak\u200b/s.txt",
    "x" * 300,
    "x/" * 3000 + "y",
    "../" * 400 + "etc/passwd",
    "sub/" * 30 + "../" * 40 + "out/s.txt",
    "leak/new2",
    "hidden/s.txt",
    "absolute/s.txt",
    "\n../out/s.txt",
    "\t../out/s.txt",
    " ../out/s.txt",
    "../out/s.txt ",
    "$HOME/x",
    "`ls`",
)
TOOLS: Sequence[tuple[FunctionTool, Mapping[str, object], str]] = (
    (read_file, {}, "path"),
    (write_file, {"content": "x"}, "path"),
    (edit_file, {"old": MARK, "new": "x"}, "path"),
    (list_dir, {}, "path"),
    (find_files, {"pattern": "**/*"}, "path"),
    (grep, {"pattern": "[O]UTSIDE-4711"}, "path"),
    (delete_path, {}, "path"),
    (apply_patch, {"add": ""}, "patch"),
    (apply_patch, {"update": ""}, "patch"),
    (apply_patch, {"delete": ""}, "patch"),
    (apply_patch, {"move": ""}, "patch"),
)
SECTIONS = {
    "add": "*** Add File: {}\n+x",
    "update": "*** Update File: {}\n@@\n-" + MARK + "\n+x",
    "delete": "*** Delete File: {}",
    "move": "*** Update File: own.txt\n*** Move to: {}\n@@\n-own\n+x",
}


class Painter:
    async def make_image(self, prompt: str, *, size: str = "", session: str = "") -> Media:
        return Media(b"\x89PNG\r\n\x1a\n" + b"x" * 20, "image/png")


class World:
    """A workspace `abc` with every kind of link out of it, between two folders that nobody may touch."""

    def __init__(self, root: Path) -> None:
        self.root = root / "w"
        self.space = self.root / "abc"
        (self.space / "sub").mkdir(parents=True)
        for name in ("abcdef", "out"):
            (self.root / name).mkdir()
            (self.root / name / "s.txt").write_text(MARK)
        out = self.root / "out"
        for name, target in (
            ("leak", "../out"),
            ("new", "../out/n.txt"),
            ("chain1", "chain2"),
            ("chain2", "leak"),
            ("loop", "loop"),
            ("rootlink", "/"),
            ("proclink", "/proc/self"),
            ("fdlink", "/dev/fd"),
            ("absolute", str(out)),
            ("hidden", "sub/../../out"),
        ):
            (self.space / name).symlink_to(target)
        os.mkfifo(self.space / "pipe")
        (self.space / "own.txt").write_text("own\n")

    def outside(self) -> dict[str, str]:
        """All that is outside, with its content."""
        found = {}
        for folder in ("abcdef", "out"):
            for path in (self.root / folder).rglob("*"):
                found[str(path)] = path.read_text() if path.is_file() else ""
        return found | {name: "" for name in os.listdir(self.root)}


def probe(folder: Path) -> list[Played]:
    """Each tool on each path."""
    played: list[Played] = []
    painter = make_image(Painter())
    for number, path in enumerate(PATHS):
        world = World(folder / str(number))
        for tool, more, argument in (*TOOLS, (painter, {"prompt": "x"}, "path")):
            placed = path.replace("{w}", str(world.root))
            values = {argument: placed, **more}
            if argument == "patch":
                section = SECTIONS[next(iter(more))].format(placed)
                values = {"patch": f"*** Begin Patch\n{section}\n*** End Patch"}
            before = world.outside()
            text = _said(tool, values, world.space)
            got_out = MARK in text.replace(placed, "") or "root:x:0" in text or world.outside() != before
            played.append(Played("paths", f"{tool.name} {values!r}"[:200], got_out))
    return played


def swaps(folder: Path, *, rounds: int) -> list[Played]:
    """A second thread turns a folder into a link out and back while the tools work."""
    world = World(folder / "swap")
    (world.space / "door").mkdir()
    (world.space / "door" / "s.txt").write_text("own")
    (world.space / "other").symlink_to("../out")
    over = threading.Event()

    def swap() -> None:
        door, other, spare = (world.space / name for name in ("door", "other", "spare"))
        while not over.is_set():
            for first, second in ((door, spare), (other, door), (door, other), (spare, door)):
                with suppress(OSError):  # a tool has just put something in its place
                    os.rename(first, second)

    thread = threading.Thread(target=swap)
    thread.start()
    played: list[Played] = []
    before = world.outside()
    try:
        for _ in range(rounds):
            for tool, more, argument in TOOLS[:6]:
                text = _said(tool, {argument: "door/s.txt" if tool.name != "list_dir" else "door", **more}, world.space)
                played.append(
                    Played(
                        "paths swapped", tool.name, MARK in text.replace(f"'{MARK}'", "") or world.outside() != before
                    )
                )
    finally:
        over.set()
        thread.join()
    return played


def _said(tool: FunctionTool, values: Mapping[str, object], space: Path) -> str:
    async def go() -> ToolResult:
        bound = tool.bind(json.dumps(values), workspace=str(space))
        return await asyncio.wait_for(bound.run(tool_context(space)), 20)

    try:
        return asyncio.run(go()).text.replace(f"pattern {MARK}", "")
    except (LimpetError, OSError) as error:
        return f"refused: {error}".replace(MARK, "")
