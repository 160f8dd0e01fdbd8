"""Speech to text: `POST /audio/transcriptions`, a form with the recording in it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import PurePath

from msgspec import Struct

from limpet.config.schema import TranscriptionPurpose
from limpet.errors import InputError
from limpet.llm.media.desk import Desk, Errand, check_wire, decoded
from limpet.llm.media.rules import TranscriptionRule, cost_of_tokens, transcription_rule
from limpet.types.usage import Usage

RECORDINGS: Mapping[str, str] = {
    ".flac": "audio/flac",
    ".m4a": "audio/mp4",
    ".mp3": "audio/mpeg",
    ".mp4": "audio/mp4",
    ".mpeg": "audio/mpeg",
    ".mpga": "audio/mpeg",
    ".oga": "audio/ogg",
    ".ogg": "audio/ogg",
    ".opus": "audio/ogg",
    ".wav": "audio/wav",
    ".webm": "audio/webm",
}
"""Endings of recordings that services take, with their types."""
SLOWEST = 2_000
"""Bytes a second of the recordings that are taken to be the longest for their size (16 kbit/s)."""
_SENT_AS = {".oga": ".ogg", ".opus": ".ogg"}  # the same container under the name that services know


class _Used(Struct):
    seconds: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None


class _Transcript(Struct):
    text: str
    usage: _Used | None = None
    duration: float | None = None


async def transcribe(desk: Desk, data: bytes, *, name: str, settings: TranscriptionPurpose, session: str) -> str:
    """What is said in the recording `data`; empty where nothing is. `name` is its file name.

    Raises `InputError` for a kind or size the service does not take, `ModelError`, `BudgetError`.
    """
    profile = desk.profile
    check_wire(profile, "transcription")
    rule = transcription_rule(profile.model)
    ending = check_recording(data, name=name)
    if len(data) > rule.largest and not profile.local:
        raise InputError(
            f"{name} has {len(data) / 1e6:.1f} MB; {profile.reference} takes {rule.largest >> 20} MB at the most.",
            hint="Cut it into parts or lower its bit rate, such as: ffmpeg -i IN -ac 1 -b:a 32k OUT.ogg",
        )
    fields = {"model": profile.model, "response_format": "json"}
    if settings.language:
        fields[rule.language_field] = settings.language
    if settings.temperature is not None:
        fields["temperature"] = f"{settings.temperature:g}"
    body, content_type = form(fields, f"audio{_SENT_AS.get(ending, ending)}", mime=RECORDINGS[ending], data=data)

    def read(answer: bytes) -> tuple[str, Usage]:
        found = decoded(answer, _Transcript, provider=profile.provider)
        return found.text.strip(), _usage(found, rule)

    most = len(data) // SLOWEST * rule.minute // 60 + rule.minute
    errand = Errand("/audio/transcriptions", body, content_type=content_type, at_most=most, session=session)
    return await desk.run(errand, read)


def check_recording(data: bytes, *, name: str) -> str:
    """The ending of a recording. Raises `InputError` when it is empty or of no kind that services take."""
    ending = PurePath(name).suffix.lower()
    if ending not in RECORDINGS:
        known = ", ".join(kind.lstrip(".") for kind in RECORDINGS)
        raise InputError(f"{name} is no recording that can be transcribed.", hint=f"Kinds that can: {known}.")
    if not data:
        raise InputError(f"{name} is empty.")
    return ending


def _usage(found: _Transcript, rule: TranscriptionRule) -> Usage:
    used = found.usage or _Used()
    if used.input_tokens or used.output_tokens:
        return cost_of_tokens(rule, input=used.input_tokens or 0, output=used.output_tokens or 0)
    seconds = used.seconds or found.duration
    return Usage(cost=round(seconds * rule.minute / 60) if seconds and rule.minute else None)


def form(fields: Mapping[str, str], file: str, *, mime: str, data: bytes) -> tuple[list[bytes], str]:
    """A `multipart/form-data` body in parts, and its content type. `file` must be plain ASCII without quotes."""
    mark = f"limpet-{secrets.token_hex(16)}"
    part = f"--{mark}\r\nContent-Disposition: form-data; name="
    head = "".join(f'{part}"{name}"\r\n\r\n{value}\r\n' for name, value in fields.items())
    head += f'{part}"file"; filename="{file}"\r\nContent-Type: {mime}\r\n\r\n'
    return [head.encode(), data, f"\r\n--{mark}--\r\n".encode()], f"multipart/form-data; boundary={mark}"
