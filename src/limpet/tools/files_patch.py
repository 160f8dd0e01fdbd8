"""`apply_patch`: several files changed by one text, all of them or none."""

from __future__ import annotations

import os
from typing import Annotated

from msgspec import Struct, structs

from limpet.errors import ToolError
from limpet.toolkit.schema import tool
from limpet.toolkit.truncate import head
from limpet.tools.disk import check_unchanged, confirm, digest, judged, mode_of, put
from limpet.tools.files_edit import DIFF_CHARS, DIFF_LINES, as_bytes, as_text, diff_of
from limpet.tools.files_write import to_trash
from limpet.tools.patch import Section, parse, patched, paths_in
from limpet.tools.paths import Root, Spot, missing, read_bytes
from limpet.types.ports import ToolContext
from limpet.types.tool import Details, FileIntent, ToolResult, text_result


class _Step(Struct, frozen=True):
    """One file to be written, or deleted (`data` is None). `was` is its hash now, empty without a file."""

    spot: Spot
    was: str
    data: bytes | None
    mode: int | None = None

    @property
    def intent(self) -> FileIntent:
        return FileIntent(path=self.spot.path, before=self.was, after="" if self.data is None else digest(self.data))


class _Planned(Struct, frozen=True):
    """What a section comes to: its steps, what it did in a few words, its diff."""

    steps: tuple[_Step, ...]
    did: str
    diff: str


@tool(effect="file", writes=("patch",), whole=("patch",), brief="Apply a patch.", paths=paths_in)
async def apply_patch(
    context: ToolContext,
    patch: Annotated[str, "*** Begin Patch … *** End Patch"],
) -> ToolResult:
    """Change several files at once: *** Add File, *** Delete File, *** Update File (*** Move to) with @@ hunks of
    lines marked by space, - and +. All of it applies, or nothing."""
    known = {one.path: one for one in context.intent.each} if context.intent else {}
    with Root(context.workspace, veil=context.veil) as root:
        planned = [_plan(root, section, known, context) for section in parse(patch)]
        steps = _ordered(planned)
        if not steps and not known:
            raise ToolError("nothing would change: the files are as the patch wants them")
        if steps:
            await context.starting(context.intent or _intent(steps))
            _carry_out(root, steps, key=context.key)
    return _result(planned, steps)


def _intent(steps: list[_Step]) -> FileIntent:
    first, *more = [step.intent for step in steps]
    return structs.replace(first, more=tuple(more))


def _ordered(planned: list[_Planned]) -> list[_Step]:
    """All that is written, then all that is deleted: killed in between, no content is lost. Raises `ToolError`."""
    steps = [step for one in planned for step in one.steps]
    paths = [step.spot.path for step in steps]
    for path in paths:
        if paths.count(path) > 1:
            raise ToolError(f"{path} is changed twice by the patch; nothing was changed")
    written = [step.spot.path for step in steps if step.data is not None]
    for path in written:
        if any(other.startswith(f"{path}{os.sep}") for other in written):
            raise ToolError(f"{path} would be a file and a folder; nothing was changed")
    return [step for step in steps if step.data is not None] + [step for step in steps if step.data is None]


def _plan(root: Root, section: Section, known: dict[str, FileIntent], context: ToolContext) -> _Planned:
    """What is to be done of a section; of what was done before an interruption (`known`) only the rest."""
    if section.kind == "add":
        return _plan_add(root, section, known)
    spot = root.target(section.path)
    if spot.kind == "missing" and spot.path in known:
        return _Planned((), f"deleted {spot.relative}", "")
    if spot.kind == "missing":
        raise missing(section.path)
    before = read_bytes(spot) if section.kind == "delete" and spot.kind == "file" else as_bytes(spot)
    was = digest(before)
    if section.kind == "delete":
        check_unchanged(spot, was, context)
        judged(spot, before, None, context)
        return _Planned((_Step(spot, was, None),), f"deleted {spot.relative}", "")
    if spot.path in known and was == known[spot.path].after:
        return _Planned((), f"updated {spot.relative}", "")
    check_unchanged(spot, was, context)
    mark, text = as_text(before, spot.relative)
    after = patched(text, section)
    data = mark + after.encode("utf-8", "surrogateescape")
    if section.to:
        judged(spot, before, None, context)
    else:
        data = judged(spot, before, data, context) or b""
        after = as_text(data, spot.relative)[1]
    diff = diff_of(text, after, spot.relative)
    if section.to:
        return _plan_move(root, section, spot, data, was=was, known=known, diff=diff)
    steps = (_Step(spot, was, data),) if data != before else ()
    return _Planned(steps, f"updated {spot.relative}", diff)


def _plan_add(root: Root, section: Section, known: dict[str, FileIntent]) -> _Planned:
    spot = root.target(section.path)
    data = section.content.encode("utf-8", "replace")
    did = f"added {spot.relative}"
    if spot.kind == "file" and spot.path in known and digest(as_bytes(spot)) == known[spot.path].after:
        return _Planned((), did, "")
    if spot.kind != "missing" or section.path.endswith("/"):
        raise ToolError(f"{section.path} exists already; nothing was changed", hint="Use *** Update File.")
    return _Planned((_Step(spot, "", data),), did, diff_of("", section.content, spot.relative))


def _plan_move(
    root: Root, section: Section, spot: Spot, data: bytes, *, was: str, known: dict[str, FileIntent], diff: str
) -> _Planned:
    target = root.target(section.to)
    away = _Step(spot, was, None)
    did = f"moved {spot.relative} to {target.relative}"
    if target.kind == "file" and target.path in known and digest(as_bytes(target)) == digest(data):
        return _Planned((away,), did, diff)
    if target.kind != "missing" or section.to.endswith("/"):
        raise ToolError(f"{section.to} exists already; nothing was changed")
    return _Planned((_Step(target, "", data, mode_of(spot)), away), did, diff)


def _carry_out(root: Root, steps: list[_Step], *, key: str) -> None:
    """Do all steps. Raises `ToolError` that says what was done before the one that failed."""
    done: list[str] = []
    for step in steps:
        try:
            if step.data is None:
                confirm(step.spot, step.was)
                to_trash(root, step.spot, key=key)
            else:
                put(root, step.spot, step.data, was=step.was, key=key, mode=step.mode)
        except ToolError as error:
            if not done:
                raise
            raise ToolError(f"{error}\nDone before that: {', '.join(done)}. The rest of the patch was not.") from None
        done.append(step.spot.relative)


def _result(planned: list[_Planned], steps: list[_Step]) -> ToolResult:
    did = "; ".join(one.did for one in planned)
    diff = "".join(one.diff for one in planned)
    shown = head(diff, lines=DIFF_LINES, chars=DIFF_CHARS)
    more = "" if shown.whole else "[The rest of the diff is left out.]"
    files = tuple((step.intent.path, step.intent.after) for step in steps)
    first = files[0] if files else ("", "")
    details = Details(summary=did[:200], path=first[0], sha256=first[1], diff=diff, files=files[1:])
    return text_result(f"{did}\n{shown.head}{more}".rstrip("\n"), details=details)
