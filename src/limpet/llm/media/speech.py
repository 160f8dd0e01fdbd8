"""Text to speech: `POST /audio/speech`; a long text goes in pieces cut at sentences and comes back as one recording."""

from __future__ import annotations

import re
import struct

import msgspec

from limpet.config.schema import SpeechPurpose
from limpet.errors import InputError, UpstreamError
from limpet.llm.media.desk import Desk, Errand, check_wire, decoded, strange
from limpet.llm.media.rules import SpeechRule, speech_rule
from limpet.types.ports import Media
from limpet.types.usage import Usage

MIMES = {
    "aac": "audio/aac",
    "flac": "audio/flac",
    "mp3": "audio/mpeg",
    "opus": "audio/ogg",
    "pcm": "audio/pcm",
    "wav": "audio/wav",
}
LONGEST = 100_000
"""Characters that are spoken at the most: about two hours."""
_CUTS = (
    r"\n\s*\n",
    r"[.!?\u2026]+[\"'\u201d\u2019)]*\s|[\u3002\uff01\uff1f]",
    r"[,;:]\s|[\uff0c\uff1b\uff1a\u3001]",
    r"\s",
)
"""Where a text may be cut, the best first: paragraph, sentence, clause, word."""


async def speak(desk: Desk, text: str, *, settings: SpeechPurpose, session: str) -> Media:
    """`text` spoken. Raises `InputError` for what cannot be spoken so, `ModelError`, `BudgetError`."""
    profile = desk.profile
    check_wire(profile, "speech")
    rule = speech_rule(profile.model)
    if not text.strip():
        raise InputError("There is nothing to speak.")
    if len(text) > LONGEST:
        raise InputError(f"The text has {len(text):,} characters; at most {LONGEST:,} are spoken.")
    if settings.format not in rule.formats:
        raise InputError(
            f"{profile.reference} does not speak {settings.format}.",
            hint=f"Set models.purposes.speech.format to one of: {', '.join(rule.formats)}.",
        )
    pieces = [piece for piece in cut(text, rule.longest) if piece.strip()]
    if len(pieces) > 1 and settings.format == "flac":
        raise InputError(
            f"Over {rule.longest:,} characters cannot become one flac file.", hint="Use mp3, opus or wav for it."
        )
    parts = [await _piece(desk, piece, settings=settings, rule=rule, session=session) for piece in pieces]
    data = joined_wav(parts) if settings.format == "wav" and len(parts) > 1 else b"".join(parts)
    return Media(data, MIMES[settings.format])


async def _piece(desk: Desk, text: str, *, settings: SpeechPurpose, rule: SpeechRule, session: str) -> bytes:
    profile = desk.profile
    voice = settings.voice or rule.voice
    fields = {"model": profile.model, "input": text, "voice": voice, "response_format": settings.format}
    cost = round(len(text) * rule.characters / 1_000_000) if rule.characters else None

    def read(answer: bytes) -> tuple[bytes, Usage]:
        if answer.lstrip()[:1] in (b"{", b"<", b""):
            decoded(answer, dict[str, object], provider=profile.provider)
            raise strange(answer, provider=profile.provider)
        return answer, Usage(cost=cost)

    body = [msgspec.json.encode(fields)]
    return await desk.run(Errand("/audio/speech", body, at_most=cost or 0, session=session), read)


def cut(text: str, longest: int) -> list[str]:
    """`text` in pieces of at most `longest` characters, cut where a speaker would pause. Joined they are the text."""
    pieces: list[str] = []
    while len(text) > longest:
        at = _place(text, longest)
        pieces.append(text[:at])
        text = text[at:]
    return [*pieces, text]


def _place(text: str, longest: int) -> int:
    for pattern in _CUTS:
        ends = [match.end() for match in re.finditer(pattern, text[:longest])]
        if ends and ends[-1] >= longest // 4:
            return ends[-1]
    return longest


def joined_wav(parts: list[bytes]) -> bytes:
    """Recordings of the same form as one. Sizes in the headers of streamed ones are not believed.

    Raises `UpstreamError` when one is no WAV file.
    """
    sound = b"".join(part[_start_of_sound(part) :] for part in parts)
    head = bytearray(parts[0][: _start_of_sound(parts[0])])
    head[4:8] = struct.pack("<I", len(head) + len(sound) - 8)
    head[-4:] = struct.pack("<I", len(sound))
    return bytes(head) + sound


def _start_of_sound(part: bytes) -> int:
    at = 12
    while part.startswith(b"RIFF") and at + 8 <= len(part):
        if part[at : at + 4] == b"data":
            return at + 8
        at += 8 + int.from_bytes(part[at + 4 : at + 8], "little")
    raise UpstreamError("the service did not speak WAV", hint="Set models.purposes.speech.format to mp3.")
