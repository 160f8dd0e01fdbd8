"""Documents (PDF, Office, e-books) to text by `markitdown`, the extra `documents`, in a child process with limits."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from pathlib import Path, PurePath

from limpet.errors import InputError
from limpet.toolkit.program import ProgramError, run_program

LARGEST = 50_000_000
"""Bytes of one document."""
LARGEST_TEXT = 2_000_000
"""Bytes of its text."""
SECONDS = 60.0


async def document_text(data: bytes, name: str, *, seconds: float = SECONDS) -> str:
    """The text of a document in Markdown. `name` is its file name.

    Raises `InputError` that says why there is none: not installed, too large, too slow, unreadable, without text.
    """
    if importlib.util.find_spec("markitdown") is None:
        raise InputError(
            f"{name} cannot be read: reading documents is not installed.",
            hint="Install it: pip install 'limpet[documents]'.",
        )
    if len(data) > LARGEST:
        raise InputError(f"{name} is larger than {LARGEST:,} bytes.")
    with tempfile.TemporaryDirectory(prefix="limpet-document-") as folder:
        path = Path(folder, f"document{PurePath(name).suffix.lower()}")
        path.write_bytes(data)
        command = (sys.executable, "-P", "-m", "limpet.toolkit.document_child", str(path))
        try:
            ran = await run_program(command, seconds=seconds, largest=LARGEST_TEXT)
        except ProgramError as error:
            raise InputError(f"{name} cannot be read: {error}.") from None
    if ran.code != 0:
        why = ran.errors.splitlines()[-1].lstrip(" -") if ran.errors else f"code {ran.code}"
        raise InputError(f"{name} cannot be read: {why}")
    text = ran.output.decode("utf-8", "replace").strip()
    if not text:
        raise InputError(f"{name} holds no text.", hint="A scanned document is pictures: attach those instead.")
    return text
