"""Results over the cap: the whole goes into a blob, the model gets what fits and where the rest is (FEATURES D5)."""

from __future__ import annotations

from limpet.toolkit.truncate import ends
from limpet.types.ports import ToolContext
from limpet.types.tool import Details

_NOTICE = 400
"""Characters set aside for the notice."""


async def capped(text: str, context: ToolContext, *, share: float = 0.4) -> tuple[str, str, int]:
    """`text` within `context.result_limit`; the blob that holds the whole (or empty); characters left out.

    `share` is the part of the cap for the beginning, the rest is for the end. Secrets are redacted first.
    """
    text = context.redactor.redact(text)
    if len(text) <= context.result_limit:
        return text, "", 0
    cut = ends(text, chars=max(context.result_limit - _NOTICE, 200), share=share)
    blob = await context.blobs.put(text.encode("utf-8", "replace"))
    notice = (
        f"[{cut.omitted:,} of {cut.total:,} characters ({cut.omitted_lines:,} of {cut.total_lines:,} lines) left out "
        f"here. The whole is in {context.blobs.path(blob)}: read parts of it with read_file (offset, limit).]"
    )
    gap = "" if not cut.head or cut.head.endswith("\n") else "\n"
    return f"{cut.head}{gap}{notice}\n{cut.tail}", blob, cut.omitted


def with_spill(details: Details, *, spill: str, omitted: int) -> Details:
    """`details` that also name the spill."""
    if not spill:
        return details
    return Details(
        summary=details.summary,
        path=details.path,
        sha256=details.sha256,
        diff=details.diff,
        exit_code=details.exit_code,
        spill=spill,
        omitted=omitted,
        duration=details.duration,
    )
