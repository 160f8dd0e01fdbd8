"""What is configured for sound and pictures, each part loaded and connected when it is first used."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import structs

from limpet.config.schema import PurposeSettings
from limpet.errors import InputError
from limpet.types.ports import Media

if TYPE_CHECKING:
    from limpet.llm.media.desk import Desk

OpenDesk = Callable[[str], Awaitable["Desk"]]
"""The desk of a model by its reference. Raises `NoModelError`, `ConfigError`."""

SET_TRANSCRIPTION = "Set one: limpet config set models.purposes.transcription.model openai/gpt-transcribe"
SET_SPEECH = "Set one: limpet config set models.purposes.speech.model openai/gpt-4o-mini-tts"
SET_IMAGE = "Set one: limpet config set models.purposes.image.model openai/gpt-image-2.6-flare"

SET_EMBEDDING = "Set one: limpet config set models.purposes.embedding.model openai/text-embedding-3-small"


class Studio:
    """Implements the ports `Transcriber`, `Speaker` and `ImageMaker`; `Vectors` is its `Embedder`."""

    def __init__(self, settings: PurposeSettings, open_desk: OpenDesk) -> None:
        self._settings = settings
        self._open = open_desk
        self._desks: dict[str, Desk] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    @property
    def can_transcribe(self) -> bool:
        return bool(self._settings.transcription.command or self._settings.transcription.model)

    @property
    def can_make_images(self) -> bool:
        return bool(self._settings.image.model)

    async def transcribe(self, data: bytes, *, name: str, session: str = "") -> str:
        settings = self._settings.transcription
        if settings.command:
            from limpet.llm.media.command import transcribe_by_command

            return await transcribe_by_command(data, name=name, settings=settings)
        desk = await self._desk(settings.model, "transcription", hint=SET_TRANSCRIPTION)
        from limpet.llm.media.transcription import transcribe

        return await transcribe(desk, data, name=name, settings=settings, session=session)

    async def speak(self, text: str, *, format: str = "", session: str = "") -> Media:
        settings = self._settings.speech
        if format:
            settings = structs.replace(settings, format=format)
        desk = await self._desk(settings.model, "speech", hint=SET_SPEECH)
        from limpet.llm.media.speech import speak

        return await speak(desk, text, settings=settings, session=session)

    async def make_image(self, prompt: str, *, size: str = "", session: str = "") -> Media:
        settings = self._settings.image
        desk = await self._desk(settings.model, "making pictures", hint=SET_IMAGE)
        from limpet.llm.media.images import make

        return await make(desk, prompt, size=size, settings=settings, session=session)

    async def embed(self, texts: Sequence[str], *, session: str = "") -> Sequence[Sequence[float]]:
        desk = await self._desk(self._settings.embedding.model, "vectors", hint=SET_EMBEDDING)
        from limpet.llm.media.embedding import embed

        return await embed(desk, texts, session=session)

    async def close(self) -> None:
        for desk in self._desks.values():
            await desk.close()

    async def _desk(self, reference: str, what: str, *, hint: str) -> Desk:
        if not reference:
            raise InputError(f"No model is configured for {what}.", hint=hint)
        async with self._locks.setdefault(reference, asyncio.Lock()):  # of two that ask at once, one opens it
            if reference not in self._desks:
                self._desks[reference] = await self._open(reference)
        return self._desks[reference]


class Vectors:
    """Implements the port `Embedder` over the model `name` that `studio` is set to; never at once, being far away."""

    is_ready = False

    def __init__(self, studio: Studio, name: str) -> None:
        self._studio = studio
        self.name = name

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return await self._studio.embed(texts)

    async def close(self) -> None:
        """The studio is closed by who has it."""
