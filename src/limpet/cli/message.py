"""The message of `limpet agent`: words, standard input and attached files made into one."""

from __future__ import annotations

import os
import select
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from limpet.cli.terminal import say
from limpet.errors import InputError
from limpet.types.content import Image
from limpet.types.ports import Blobs

IMAGES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"}
FILE_LIMIT = 20_000_000
"""Bytes of one attached picture; 1,000,000 of a text."""
PATIENCE = 2.0
"""Seconds of silence on standard input after which we say what we wait for."""


class Attached(Struct, frozen=True):
    text: str
    images: tuple[Image, ...] = ()


def piped_in(*, needed: bool) -> str:
    """What was piped into standard input; empty for a terminal. Raises `InputError` when it is no text.

    `needed`: there is no other message, so anything but a terminal is read to its end.
    """
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError, AttributeError):
        return ""
    if sys.stdin.isatty() or not (needed or stat.S_ISFIFO(mode) or stat.S_ISREG(mode)):
        return ""
    if stat.S_ISFIFO(mode) and not select.select([sys.stdin], [], [], PATIENCE)[0]:
        say("waiting for the end of standard input (`</dev/null` gives it none)", error=True)
    return as_text(sys.stdin.buffer.read(), "standard input")


def as_text(data: bytes, name: str) -> str:
    """`data` as text. Raises `InputError` when it is something else."""
    try:
        if b"\0" in data:
            raise ValueError
        return data.decode("utf-8-sig")
    except ValueError:
        raise InputError(
            f"{name} is not text (UTF-8).",
            hint="Save it as a file in the workspace and say which, or attach a picture.",
        ) from None


async def attach(words: str, files: Sequence[str], *, piped: str, blobs: Blobs) -> Attached:
    """One message of all parts. Raises `InputError` for a file that cannot be taken."""
    parts = [words] if words.strip() else []
    if piped.strip():
        parts.append(piped if not parts else f"<stdin>\n{piped.rstrip()}\n</stdin>")
    images: list[Image] = []
    for name in files:
        path = Path(name.removeprefix("@")).expanduser()
        data = _read(path)
        if path.suffix.lower() in IMAGES:
            images.append(Image(blob=await blobs.put(data), mime=IMAGES[path.suffix.lower()], name=path.name))
        else:
            parts.append(f'<file name="{path.name}">\n{as_text(data, str(path)).rstrip()}\n</file>')
    if not parts and not images:
        raise InputError("There is nothing to say.", hint='Use limpet agent -m "…", or pipe a text in.')
    return Attached(text="\n\n".join(parts), images=tuple(images))


def _read(path: Path) -> bytes:
    limit = FILE_LIMIT if path.suffix.lower() in IMAGES else 1_000_000
    try:
        if not path.is_file():
            hint = 'To say something: limpet agent -m "…"; what stands alone is a file to attach.'
            raise InputError(f"{path} is not a file." if path.exists() else f"There is no file {path}.", hint=hint)
        if path.stat().st_size > limit:
            raise InputError(f"{path} is larger than {limit:,} bytes.", hint="Put it into the workspace and say which.")
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
