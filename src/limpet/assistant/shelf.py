"""The models of a process: chosen, built with their keys and fallbacks, and closed at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec import structs

from limpet.assistant.redacted import Redacted
from limpet.config import schema
from limpet.config.secrets import SecretRedactor
from limpet.errors import LimpetError
from limpet.llm.build import build
from limpet.llm.choose import Choice, ModelSettings, ProviderSettings, choose
from limpet.llm.failover import Candidate, Failover
from limpet.llm.http import Deadlines, Http
from limpet.llm.local import checked
from limpet.llm.metered import Countable, Metered
from limpet.llm.wire.service import Witness
from limpet.store import chores
from limpet.store.driver import Store
from limpet.store.learned import StoredLessons
from limpet.store.rests import StoredRests
from limpet.store.traces import StoredTraces
from limpet.types.event import Notice
from limpet.types.ports import Blobs, Clock, Emit, Meter, Model
from limpet.types.profile import Profile

if TYPE_CHECKING:
    from limpet.llm.media.desk import Desk


class Sources(NamedTuple):
    """Where models come from: what is configured, and the environment. `announce` says which one is used unasked.

    Where a model is `given`, it is every model.
    """

    settings: ModelSettings
    environ: Mapping[str, str]
    announce: bool
    given: Countable | None = None


class ModelShelf:
    """The `Models` of this process: each one is built when it is first asked for, and closed at the end.

    One model is a `Failover` over its keys, and over the fallbacks where they may stand in for it.
    """

    def __init__(
        self,
        settings: schema.Settings,
        sources: Sources,
        *,
        store: Store,
        blobs: Blobs,
        meter: Meter,
        clock: Clock,
        redactor: SecretRedactor,
        emit: Emit,
    ) -> None:
        self._settings = sources.settings
        self._environ = sources.environ
        self._announce = sources.announce
        self._given = sources.given
        self._fallbacks = settings.models
        self._emit = emit
        self._clock = clock
        self._store = store
        self._rests = StoredRests(store)
        self._witness = Witness(StoredLessons(store, clock, redactor), StoredTraces(store, clock, redactor))
        self._redactor = redactor
        self._blobs = blobs
        self._meter = meter
        llm = settings.llm
        self._deadlines = Deadlines(connect=llm.connect, first_byte=llm.first_byte, idle=llm.idle, total=llm.total)
        self._local_factor = llm.local_factor
        self._models: dict[str, Model] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def desk(self, reference: str) -> Desk:
        """Where a model for sound or pictures is asked, with each of its keys."""
        from limpet.llm.media.desk import Desk, Endpoint

        choice = await choose(self._settings, self._environ, named=reference)
        provider = choice.profile.provider
        own = self._settings.providers.get(provider, ProviderSettings())
        # The whole answer is made before its first byte comes.
        deadlines = structs.replace(self._deadlines, first_byte=self._deadlines.total)
        endpoints = [
            Endpoint(choice.profile, key, Http(provider, deadlines=deadlines, headers=own.headers), credential)
            for key, credential in _credentials(choice, own)
        ]
        return Desk(endpoints, meter=self._meter, rests=self._rests, clock=self._clock, emit=self._emit)

    async def get(self, reference: str) -> Model:
        async with self._locks.setdefault(reference, asyncio.Lock()):  # of two that ask at once, one builds it
            if reference not in self._models:
                self._models[reference] = await self._build(reference)
        return self._models[reference]

    async def _build(self, reference: str) -> Model:
        if self._given is not None:
            return Redacted(Metered(self._given, meter=self._meter), self._redactor)
        choice = await choose(self._settings, self._environ, named=reference)
        if self._announce and not reference:
            self._emit(Notice(choice.reason))
        kept = bool(reference) and not self._fallbacks.replace_chosen
        candidates = await self._candidates(choice, () if kept else self._fallbacks.fallbacks)
        stand_ins = self._fallbacks.fallbacks if kept else ()
        model = candidates[0].model
        if len(candidates) > 1 or stand_ins:
            model = Failover(candidates, rests=self._rests, clock=self._clock, stand_ins=stand_ins)
        return Redacted(model, self._redactor)

    async def _candidates(self, choice: Choice, fallbacks: Sequence[str]) -> list[Candidate]:
        """The model with each of its keys, then the fallbacks with theirs."""
        choices = [choice]
        for reference in filter(str.strip, fallbacks):
            try:
                choices.append(await choose(self._settings, self._environ, named=reference))
            except LimpetError as error:
                self._emit(Notice(f"The fallback {reference} cannot be used: {error}", level="warning"))
        return [candidate for one in choices for candidate in await self._with_keys(one)]

    async def _with_keys(self, choice: Choice) -> list[Candidate]:
        profile, warning = await checked(choice.profile, key=choice.key)
        if warning and (choice.profile.window or await self._is_news(profile)):
            self._emit(Notice(warning, level="warning"))
        own = self._settings.providers.get(profile.provider, ProviderSettings())
        return [
            Candidate(
                build(
                    structs.replace(choice, profile=profile, key=key),
                    blobs=self._blobs,
                    meter=self._meter,
                    deadlines=self._deadlines,
                    local_factor=self._local_factor,
                    headers=own.headers,
                    witness=self._witness,
                ),
                credential,
            )
            for key, credential in _credentials(choice, own)
        ]

    async def _is_news(self, profile: Profile) -> bool:
        """Whether it was never said that the window of this model is only assumed."""
        name, now = f"window assumed: {profile.reference}", self._clock.now()
        return await self._store.write(
            lambda connection: chores.take_on(connection, name, now=now, every=chores.NEVER_AGAIN)
        )

    async def close(self) -> None:
        for model in self._models.values():
            await model.close()


def _credentials(choice: Choice, own: ProviderSettings) -> list[tuple[str, str]]:
    """Each key of the choice's provider, with the name under which it rests."""
    provider = choice.profile.provider
    names = (provider, *(f"{provider}#{number}" for number in range(2, 2 + len(own.further_keys))))
    return list(zip((choice.key, *own.further_keys), names, strict=True))
