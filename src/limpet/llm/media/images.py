"""Text to picture: `POST /images/generations`."""

from __future__ import annotations

import base64
import binascii

import msgspec
from msgspec import Struct

from limpet.config.schema import ImagePurpose
from limpet.errors import InputError, UpstreamError
from limpet.llm.media.desk import Desk, Errand, check_wire, decoded, strange
from limpet.llm.media.fetch import fetch_picture
from limpet.llm.media.rules import ImageRule, cost_of_tokens, image_rule
from limpet.types.ports import Media
from limpet.types.usage import Usage

_STARTS = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))


class _Picture(Struct):
    b64_json: str | None = None
    url: str | None = None


class _Used(Struct):
    input_tokens: int = 0
    output_tokens: int = 0


class _Answer(Struct):
    data: list[_Picture]
    usage: _Used | None = None


async def make(desk: Desk, prompt: str, *, size: str, settings: ImagePurpose, session: str) -> Media:
    """A picture of `prompt`; `size` is `WIDTHxHEIGHT`, empty = as set.

    Raises `InputError` for what the model does not take, `ModelError`, `BudgetError`.
    """
    profile = desk.profile
    check_wire(profile, "making pictures")
    rule = image_rule(profile.model)
    size = size or settings.size
    _check(prompt, size, rule=rule, model=profile.reference)
    fields: dict[str, object] = {"model": profile.model, "prompt": prompt, "n": 1}
    if size:
        fields["size"] = size
    if settings.quality:
        fields["quality"] = settings.quality
    if rule.base64:
        fields["response_format"] = "b64_json"

    def read(answer: bytes) -> tuple[_Picture, Usage]:
        found = decoded(answer, _Answer, provider=profile.provider)
        if not found.data or not (found.data[0].b64_json or found.data[0].url):
            raise strange(answer, provider=profile.provider)
        return found.data[0], _usage(found, rule)

    body = [msgspec.json.encode(fields)]
    errand = Errand("/images/generations", body, at_most=rule.picture, session=session)
    picture = await desk.run(errand, read)
    if picture.b64_json:
        data = _from_base64(picture.b64_json, provider=profile.provider)
    else:
        data = await fetch_picture(picture.url or "", profile=profile)
    return Media(data, mime_of(data, provider=profile.provider))


def _check(prompt: str, size: str, *, rule: ImageRule, model: str) -> None:
    if not prompt.strip():
        raise InputError("There is nothing to draw: say what the picture shows.")
    if len(prompt) > rule.longest:
        raise InputError(f"The description has {len(prompt):,} characters; {model} takes {rule.longest:,}.")
    if size and rule.sizes and size not in rule.sizes:
        raise InputError(f"{model} makes no pictures of {size}.", hint=f"Sizes: {', '.join(rule.sizes)}.")


def _usage(found: _Answer, rule: ImageRule) -> Usage:
    if found.usage is not None:
        return cost_of_tokens(rule, input=found.usage.input_tokens, output=found.usage.output_tokens)
    return Usage()


def _from_base64(text: str, *, provider: str) -> bytes:
    try:
        return base64.b64decode(text.partition("base64,")[2] or text, validate=True)
    except binascii.Error as error:
        raise UpstreamError("the picture came as broken base64", provider=provider, status=200) from error


def mime_of(data: bytes, *, provider: str) -> str:
    """The type of a picture by its first bytes. Raises `UpstreamError` when it is none."""
    for start, mime in _STARTS:
        if data.startswith(start):
            return mime
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    raise strange(data, provider=provider)
