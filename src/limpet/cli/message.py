"""The message of `limpet agent`: words, standard input and attached files made into one."""

from __future__ import annotations

import os
import re
import select
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from limpet.assistant.orders import parse
from limpet.cli.terminal import say
from limpet.errors import InputError, LimpetError, ModelError, UserError
from limpet.types.content import Image
from limpet.types.ports import Blobs, Transcriber

RECORDINGS = frozenset((".flac", ".m4a", ".mp3", ".oga", ".ogg", ".opus", ".wav", ".webm"))
DOCUMENTS = frozenset((".docx", ".epub", ".pdf", ".pptx", ".xls", ".xlsx"))
IMAGES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"}
FILE_LIMIT = 20_000_000
TEXT_LIMIT = 1_000_000
STANDS_ALONE = 'To say something: limpet agent -m "…"; what stands alone is a file to attach.'
RECORDING_LIMIT = 500_000_000
"""Bytes of one attached picture, text, recording. Services take far less of the last, and say so."""
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


_NAMED = re.compile(r"""@"([^"]+)"|@(\S+)|'([/~][^']+)'|"([/~][^"]+)"|((?<!\S)[/~](?:\\.|\S)+)""")
"""`@FILE`, `@"FILE"`, and a path as terminals paste it when a file is dropped on them: quoted, or with backslashes."""


def files_in(line: str) -> list[str]:
    """The files that a line names as `@FILE`, and pictures whose path stands in it; all else is just words."""
    found: list[str] = []
    for match in _NAMED.finditer("" if parse(line) else line):
        named = match[1] or match[2]
        path = named or match[3] or match[4] or re.sub(r"\\(.)", r"\1", match[5])
        where = Path(path).expanduser()
        if (named or where.suffix.lower() in IMAGES) and _is_file(where):
            found.append(f"@{path}")
    return list(dict.fromkeys(found))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # longer than any name
        return False


async def attach(words: str, files: Sequence[str], *, piped: str, blobs: Blobs, transcriber: Transcriber) -> Attached:
    """One message of all parts. Raises `InputError` for a file that cannot be taken.

    A recording or document that cannot be made text is not lost silently: the message says so, and the terminal too.
    """
    parts = [words] if words.strip() else []
    if piped.strip():
        parts.append(piped if not parts else f"<stdin>\n{piped.rstrip()}\n</stdin>")
    images: list[Image] = []
    for name in files:
        path = Path(name.removeprefix("@")).expanduser()
        ending = path.suffix.lower()
        if ending in IMAGES:
            data = read_file(path, limit=FILE_LIMIT, hint=STANDS_ALONE)
            images.append(Image(blob=await blobs.put(data), mime=IMAGES[ending], name=path.name))
        elif ending in RECORDINGS:
            parts.append(await _heard(path, transcriber))
        elif ending in DOCUMENTS:
            parts.append(await _document(path))
        else:
            text = as_text(read_file(path, limit=TEXT_LIMIT, hint=STANDS_ALONE), str(path))
            parts.append(f'<file name="{path.name}">\n{text.rstrip()}\n</file>')
    if not parts and not images:
        raise InputError("There is nothing to say.", hint='Use limpet agent -m "…", or pipe a text in.')
    return Attached(text="\n\n".join(parts), images=tuple(images))


async def _heard(path: Path, transcriber: Transcriber) -> str:
    """What is said in a recording, or why that is not known."""
    data = read_file(path, limit=RECORDING_LIMIT, hint=STANDS_ALONE)
    try:
        text = await transcriber.transcribe(data, name=path.name)
    except (ModelError, UserError) as error:
        return _left_out(f"audio {path.name}", error)
    return f"[audio {path.name}, transcribed] {text or '(nothing is said in it)'}"


async def _document(path: Path) -> str:
    """The text of a document, or why there is none."""
    from limpet.toolkit.documents import document_text  # rare

    data = read_file(path, limit=FILE_LIMIT, hint=STANDS_ALONE)
    try:
        text = await document_text(data, path.name)
    except InputError as error:
        return _left_out(path.name, error)
    return f'<file name="{path.name}" form="converted to Markdown">\n{text}\n</file>'


def _left_out(what: str, error: LimpetError) -> str:
    """Tells the user; gives what the model is told."""
    say(f"warning: {error.present()}", error=True)
    return f"[{what} was attached, but its content could not be had: {error}]"


def read_file(path: Path, *, limit: int, hint: str = "") -> bytes:
    """The bytes of a file. Raises `InputError` (with `hint`) when it is none, or has more than `limit` bytes."""
    try:
        if not path.is_file():
            raise InputError(f"{path} is not a file." if path.exists() else f"There is no file {path}.", hint=hint)
        if path.stat().st_size > limit:
            raise InputError(f"{path} is larger than {limit:,} bytes.", hint="Put it into the workspace and say which.")
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
