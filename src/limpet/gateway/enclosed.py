"""What is enclosed in a message: pictures for the model, documents and recordings as text, all else as a file.

What cannot be had is said in the message: nothing is left out silently (FEATURES A7, I10).
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Sequence

from msgspec import Struct

from limpet.assistant.services import Services
from limpet.channels.documents import attached_text, readable
from limpet.channels.media import safe_name, sniff
from limpet.errors import ChannelError, InputError, LimpetError, ModelError, UserError
from limpet.types.channel import File
from limpet.types.content import Image
from limpet.types.ids import new_id

MOST = 20
"""Files of one message."""
LARGEST = 20_000_000
RECORDING = 25_000_000
"""Bytes of one file, of one recording."""
TEXT = 200_000
"""Characters of the files of one message that go into it."""
FOLDER = "attachments"
"""Below the workspace: where attached files are kept."""
PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")


class Enclosed(Struct, frozen=True):
    texts: tuple[str, ...] = ()
    images: tuple[Image, ...] = ()


async def enclosed(files: Sequence[File], services: Services, *, session: str) -> Enclosed:
    """What the model is given of `files`; `session` pays for what is transcribed."""
    texts: list[str] = []
    images: list[Image] = []
    for file in files[:MOST]:
        try:
            data = await file.fetch(RECORDING if file.mime.startswith("audio/") else LARGEST)
            one = await _one(file, data, services, session=session)
        except (ChannelError, InputError, ModelError, UserError) as error:
            one = _left_out(file.name, error)
        if isinstance(one, Image):
            images.append(one)
        else:
            texts.append(one)
    if len(files) > MOST:
        texts.append(f"[{len(files) - MOST} further files were left out: at most {MOST} are taken with one message.]")
    return Enclosed(tuple(texts), tuple(images))


def _left_out(name: str, error: LimpetError) -> str:
    return f"[{name} was attached, but its content could not be had: {error}]"


async def _one(file: File, data: bytes, services: Services, *, session: str) -> str | Image:
    """One file as the model gets it. Raises what `enclosed` tells."""
    kind = sniff(data, file.name)
    name = safe_name(file.name, kind)
    if kind.family == "audio" and file.voice:
        said = await services.studio.transcribe(data, name=name, session=session)
        return f"[voice message, transcribed] {said or '(nothing is said in it)'}"
    where = await asyncio.to_thread(_keep, data, name, services.workspace)
    if kind.mime in PICTURES:
        return Image(blob=await services.blobs.put(data), mime=kind.mime, name=name)
    if not readable(kind):
        return f"[file {name} ({kind.mime}, {len(data):,} bytes), kept as {where}]"
    text = await attached_text(data, name)
    cut = f"\n[… cut at {TEXT:,} characters; all of it is in {where}]" if len(text) > TEXT else ""
    return f'<file name="{name}" kept="{where}">\n{text[:TEXT].rstrip()}{cut}\n</file>'


def _keep(data: bytes, name: str, workspace: str) -> str:
    """Keep a file in the workspace; gives its path there. Written once, however often it comes."""
    folder = os.path.join(workspace, FOLDER)
    where = os.path.join(FOLDER, f"{hashlib.sha256(data).hexdigest()[:8]}-{name}")
    path, draft = os.path.join(workspace, where), os.path.join(folder, f".{new_id('f')}.tmp")
    try:
        if not os.path.exists(path):
            os.makedirs(folder, exist_ok=True)
            with open(draft, "xb") as file:
                file.write(data)
            os.rename(draft, path)
    except OSError as error:
        raise InputError(f"it cannot be kept in the workspace: {error.strerror}") from None
    return where
