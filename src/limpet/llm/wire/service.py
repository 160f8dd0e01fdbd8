"""What all wires over HTTP share: one request to one service, and its answer as events."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import ClassVar

from limpet.llm.http import Answer, Http
from limpet.llm.names import key_of
from limpet.llm.prefix import PrefixCache
from limpet.llm.schema import Offers
from limpet.types.event import ModelEvent
from limpet.types.message import Request
from limpet.types.ports import Blobs
from limpet.types.profile import Profile


class Service(ABC):
    """A `Model` at one service. A wire says how a request is written, where it goes, and how the answer is read."""

    key_header: ClassVar[str] = ""
    """The wire's usual header for the key; empty: a bearer token."""

    def __init__(
        self,
        profile: Profile,
        *,
        key: str,
        http: Http,
        prefix: PrefixCache | None = None,
        blobs: Blobs | None = None,
    ) -> None:
        """`key` may be empty for services that need none."""
        self._profile = profile
        self._headers = key_of(profile, key, header=self.key_header)
        self._http = http
        self._prefix = prefix or PrefixCache()
        self._blobs = blobs
        self._offers = Offers(profile)

    @property
    def profile(self) -> Profile:
        return self._profile

    async def close(self) -> None:
        await self._http.close()

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        for notice in self._offers.news(request.tools):
            yield notice
        body = self._encode(request)
        url, headers = await self._target(body)
        async with (
            self._http.post(url, body, headers=headers) as answer,
            aclosing(self._read(answer, request)) as events,
        ):
            async for event in events:
                yield event

    @abstractmethod
    def _encode(self, request: Request) -> list[bytes]:
        """The body, in parts."""

    @abstractmethod
    async def _target(self, body: Sequence[bytes]) -> tuple[str, dict[str, str]]:
        """The address, and the headers that go there."""

    @abstractmethod
    def _read(self, answer: Answer, request: Request) -> AsyncGenerator[ModelEvent, None]:
        """The events of an answer, `Done` last. Raises `ModelError`."""
