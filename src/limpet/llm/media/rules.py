"""What is particular about models for sound and pictures, as data in `rules.json`: limits, voices, sizes, prices.

Prices are the list prices of developers.openai.com/api/docs/models (each model's page) and console.groq.com/docs, read
in November 2026; one that is missing is not known. OpenAI ends `gpt-image-1*` by 2026-12-01, `tts-1*` and
`gpt-4o-mini-tts` on 2027-01-06, `whisper-1` and `gpt-4o-*transcribe` on 2027-02-26 (its page
`deprecations`).
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct, structs

from limpet.types.usage import Usage

R = TypeVar("R", bound="Rule")
_FILE = Path(__file__).with_name("rules.json")


class Rule(Struct, frozen=True, omit_defaults=True):
    """`match` is a pattern of model names. `input` and `output` are micro-dollars per million tokens."""

    match: str
    input: int = 0
    output: int = 0


class TranscriptionRule(Rule, frozen=True, omit_defaults=True):
    """`largest` in bytes, `minute` in micro-dollars: what is paid, or comes to about that where tokens are paid."""

    largest: int = 0
    minute: int = 0
    language_field: str = "language"


class SpeechRule(Rule, frozen=True, omit_defaults=True):
    """`longest` is the most characters of one request, `characters` micro-dollars per million of them."""

    voice: str = ""
    longest: int = 0
    formats: tuple[str, ...] = ()
    characters: int = 0


class ImageRule(Rule, frozen=True, omit_defaults=True):
    """`base64`: has to be asked for it. `sizes` empty: any. `picture`: micro-dollars that one may cost."""

    longest: int = 0
    base64: bool = False
    sizes: tuple[str, ...] = ()
    picture: int = 0


class _Rules(Struct, frozen=True):
    transcription: tuple[TranscriptionRule, ...]
    speech: tuple[SpeechRule, ...]
    image: tuple[ImageRule, ...]


@cache
def _rules() -> _Rules:
    return msgspec.json.decode(_FILE.read_bytes(), type=_Rules)


def transcription_rule(model: str) -> TranscriptionRule:
    return _merged(_rules().transcription, model)


def speech_rule(model: str) -> SpeechRule:
    return _merged(_rules().speech, model)


def image_rule(model: str) -> ImageRule:
    return _merged(_rules().image, model)


def _merged(rules: tuple[R, ...], model: str) -> R:
    """All that match, later ones over earlier ones; a vendor's prefix of the name is looked past."""
    full = model.lower()
    names = (full, full.rpartition("/")[2])
    found = rules[0]
    for rule in rules:
        if any(fnmatchcase(name, rule.match) for name in names):
            said = {name: value for name, value in structs.asdict(rule).items() if value}
            found = structs.replace(found, **said)
    return found


def cost_of_tokens(rule: Rule, *, input: int, output: int) -> Usage:
    """The usage of an answer that names its tokens; without a price its cost is unknown."""
    cost = (input * rule.input + output * rule.output) // 1_000_000 if rule.input or rule.output else None
    return Usage(input=input, output=output, cost=cost)
