"""A plan of restoring for people: what would become of each path, then the differences of texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import unified_diff

from limpet.toolkit.truncate import head
from limpet.undo.keeper import show
from limpet.undo.restore import Get, Step
from limpet.undo.tree import Node

LINES, CHARS = 120, 6_000
"""Of all differences together."""
LISTED = 40
"""Paths of one kind."""
LARGEST = 200_000
"""Bytes of a text whose differences are shown."""

Present = Callable[[bytes], bytes | None]
"""The bytes of the file that is at a path now."""


def actions(steps: Sequence[Step]) -> list[str]:
    """A line for each path that would be restored."""
    return _capped([f"- {_action(step)}" for step in steps if step.verdict == "restore"])


def exceptions(steps: Sequence[Step]) -> list[str]:
    """A line for each path that would stay as it is although the turn changed it, with the reason."""
    stays = [step for step in steps if step.verdict not in ("restore", "already")]
    return _capped([f"- {show(step.path)}: {step.why}" for step in stays])


def _capped(lines: list[str]) -> list[str]:
    return [*lines[:LISTED], f"- … and {len(lines) - LISTED} more"] if len(lines) > LISTED else lines


def _action(step: Step) -> str:
    name, before, now = show(step.path), step.before, step.now
    if before is None:
        return f"remove {_kind(now)}{name}"
    if now is None:
        return f"bring back {_kind(before)}{name}"
    if before.kind != now.kind:
        return f"make {name} {_long_kind(before)} again"
    if before.content == now.content:
        return f"set the mode of {name} to {before.mode:o} (now {now.mode:o})"
    mode = f", mode {before.mode:o}" if before.mode != now.mode else ""
    return f"put back {_kind(before)}{name}{mode}"


def _kind(node: Node | None) -> str:
    return "" if node is None or node.kind == "file" else f"the {_word(node)} "


def _long_kind(node: Node) -> str:
    return f"a {_word(node)}"


def _word(node: Node) -> str:
    return {"other": "pipe or socket", "closed": "folder"}.get(node.kind, node.kind)


def differences(steps: Sequence[Step], get: Get, present: Present) -> str:
    """Unified differences from what is there now to what would be there again; long ones are cut."""
    parts: list[str] = []
    size = 0
    for step in steps:
        if step.verdict == "restore" and size <= CHARS and (text := _difference(step, get, present)):
            parts.append(text)
            size += len(text)
    shown = head("\n".join(parts), lines=LINES, chars=CHARS)
    return shown.head if shown.whole else f"{shown.head}\n[The rest of the differences is left out.]"


def _difference(step: Step, get: Get, present: Present) -> str:
    before, now = step.before, step.now
    if not _is_shown(before) or not _is_shown(now) or (before and now and before.content == now.content):
        return ""
    old = b"" if now is None else present(step.path)
    new = b"" if before is None else get(before.content)
    if old is None or new is None:
        return ""
    name = show(step.path)
    if b"\0" in old[:8_000] or b"\0" in new[:8_000]:
        return f"{name}: not text ({len(old):,} bytes now, {len(new):,} then)"
    is_now = f"{name} (now)" if now else "/dev/null"
    was_then = f"{name} (then)" if before else "/dev/null"
    return "\n".join(unified_diff(_lines(old), _lines(new), is_now, was_then, n=2, lineterm=""))


def _lines(data: bytes) -> list[str]:
    return data.decode("utf-8", "replace").splitlines()


def _is_shown(node: Node | None) -> bool:
    return node is None or (node.kind == "file" and bool(node.content) and node.size <= LARGEST)
