"""A studio at a fake service, with a meter that keeps what it was told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal, TypeVar

from msgspec import structs

from limpet.config.schema import ImagePurpose, PurposeSettings, SpeechPurpose, TranscriptionPurpose
from limpet.llm.http import Deadlines, Http
from limpet.llm.media.desk import Desk, Endpoint
from limpet.llm.media.studio import Studio
from limpet.llm.profiles import profile_of
from limpet.llm.retry import Patience
from limpet.testing.clock import FakeClock
from limpet.testing.fakes.media import FakeMedia
from limpet.types.message import Request
from limpet.types.profile import Profile
from limpet.types.usage import Usage

T = TypeVar("T")
SETTINGS = PurposeSettings(
    transcription=TranscriptionPurpose(model="openai/whisper-1"),
    speech=SpeechPurpose(model="openai/tts-1"),
    image=ImagePurpose(model="openai/gpt-image-1"),
)


class Ledger:
    """`Meter` and `Rests` in memory: `settled` is each request's end and what it cost in micro-dollars."""

    def __init__(self) -> None:
        self.reserved: list[int] = []
        self.settled: list[tuple[str, int | None]] = []

    async def reserve(self, request: Request, profile: Profile, *, at_most: int) -> tuple[str, str]:
        self.reserved.append(at_most)
        return str(len(self.reserved)), ""

    async def settle(self, reservation: str, usage: Usage, *, state: Literal["done", "failed"]) -> None:
        self.settled.append((state, usage.cost))

    def look(self, name: str) -> tuple[int, str]:
        return 0, ""

    async def rest(self, name: str, *, until: int, reason: str) -> None:
        pass


def in_studio(
    server: FakeMedia,
    work: Callable[[Studio], Awaitable[T]],
    *,
    settings: PurposeSettings = SETTINGS,
    keys: tuple[str, ...] = (FakeMedia.key,),
    deadlines: Deadlines = Deadlines(total=5, first_byte=5, idle=5),  # noqa: B008 (frozen)
    ledger: Ledger | None = None,
) -> T:
    """What `work` gives, with every model at `server`."""
    kept = ledger or Ledger()

    async def open_desk(reference: str) -> Desk:
        provider, _, model = reference.partition("/")
        profile = structs.replace(profile_of(provider, model), base_url=server.base_url)
        endpoints = [Endpoint(profile, key, Http(provider, deadlines=deadlines), key) for key in keys]
        patience = Patience(pause=0.01)
        return Desk(endpoints, meter=kept, rests=kept, clock=FakeClock(), emit=lambda event: None, patience=patience)

    async def main() -> T:
        async with server:
            studio = Studio(settings, open_desk)
            try:
                return await work(studio)
            finally:
                await studio.close()

    return asyncio.run(main())
