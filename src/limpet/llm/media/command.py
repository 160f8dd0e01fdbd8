"""Transcription by a program on this machine, such as whisper.cpp: `{file}` in its command is the recording."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path, PurePath

from limpet.config.schema import TranscriptionPurpose
from limpet.errors import InputError, UpstreamError
from limpet.llm.media.transcription import check_recording
from limpet.toolkit.program import ProgramError, run_program

LARGEST_TEXT = 4 << 20
PROVIDER = "transcription command"


async def transcribe_by_command(data: bytes, *, name: str, settings: TranscriptionPurpose) -> str:
    """What the program says of the recording: its output, or the file `{output}` where its command names one.

    Raises `InputError` for no recording, `UpstreamError` when the program fails, hangs or is missing.
    """
    ending = check_recording(data, name=name)
    with tempfile.TemporaryDirectory(prefix="limpet-audio-") as folder:
        source, target = Path(folder, f"audio{ending}"), Path(folder, "text")
        await asyncio.to_thread(source.write_bytes, data)
        command = [part.replace("{file}", str(source)).replace("{output}", str(target)) for part in settings.command]
        try:
            ran = await run_program(command, seconds=settings.timeout, largest=LARGEST_TEXT)
        except ProgramError as error:
            raise UpstreamError(str(error), provider=PROVIDER, hint=_HINT) from None
        if ran.code != 0:
            what = f"{PurePath(command[0]).name} ended with code {ran.code}"
            why = ran.errors.splitlines()[-1] if ran.errors else "without a word"
            raise UpstreamError(f"{what}: {why}", provider=PROVIDER, hint=_HINT)
        if any("{output}" in part for part in settings.command):
            return await asyncio.to_thread(_written, target)
    return ran.output.decode("utf-8", "replace").strip()


_HINT = "Check models.purposes.transcription.command, or set models.purposes.transcription.model instead."


def _written(target: Path) -> str:
    """The text a program wrote; some add an ending of their own to the name they are given."""
    found = [target] if target.exists() else sorted(target.parent.glob(f"{target.name}.*"))
    if not found:
        raise UpstreamError("the program wrote no text to {output}", provider=PROVIDER, hint=_HINT)
    if found[0].stat().st_size > LARGEST_TEXT:
        raise InputError(f"The transcript is over {LARGEST_TEXT >> 20} MB.")
    return found[0].read_text("utf-8", "replace").strip()
