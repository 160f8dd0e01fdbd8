"""The supervisor: keeps one channel connected, and knows whether messages flow."""

from __future__ import annotations

import asyncio
import logging
import random
from typing import Literal, Protocol

from msgspec import Struct

from limpet.config.channels import ChannelSettings
from limpet.errors import ChannelError, LimpetError, RefusedError
from limpet.types.channel import Arrival, Channel
from limpet.types.ports import Clock

log = logging.getLogger(__name__)

State = Literal["starting", "connected", "degraded", "refused", "stopped"]
PAUSES = (1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 60.0)
"""Seconds between two tries to connect, ± 20 %; the last one from then on."""
REFUSED = 300.0
"""Seconds after the platform has refused us: a token does not become right by asking."""
STEADY = 60.0
"""Seconds of flowing messages after which a new failure counts as the first."""
CLOSING = 2.0


class Health(Struct, frozen=True):
    """How a channel is. `since` is how long it has been so, times are UTC ms, 0 = never."""

    channel: str
    account: str
    state: State
    since: int
    received: int = 0
    sent: int = 0
    error: str = ""


class Intaking(Protocol):
    """Called with the arrivals of all links; provided by `intake`."""

    async def take(self, link: Link, arrival: Arrival) -> None:
        """See `Desk.receive`."""
        ...


class Link:
    """One channel and its connection. Implements the port `Desk` for it: arrivals go to `desk`.

    `connected` is set while messages flow, which only the channel knows: it says so by `up` and `down`.
    """

    def __init__(self, channel: Channel, settings: ChannelSettings, *, desk: Intaking, clock: Clock) -> None:
        self.channel = channel
        self.settings = settings
        self.connected = asyncio.Event()
        self._desk = desk
        self._clock = clock
        self._random = random.Random()
        self._up_at = 0.0
        self._state: State = "starting"
        self._since = clock.now()
        self._received = self._sent = 0
        self._error = ""

    @property
    def name(self) -> tuple[str, str]:
        return self.channel.name, self.channel.account

    @property
    def health(self) -> Health:
        return Health(*self.name, self._state, self._since, self._received, self._sent, self._error)

    async def run(self) -> None:
        """Keep the channel connected until cancelled."""
        failures = 0
        try:
            while True:
                self._up_at = 0.0
                try:
                    await self.channel.run(self)
                    error: LimpetError = ChannelError("The connection has ended.")
                except LimpetError as caught:
                    error = caught
                except Exception as caught:  # a fault of the adapter or its library: logged, told, tried again
                    log.exception("channel %s", ":".join(self.name))
                    error = ChannelError(f"{type(caught).__name__}: {caught}")
                steady = self._up_at and self._clock.monotonic() - self._up_at > STEADY
                failures = 0 if steady else failures
                self._lose(error)
                pause = REFUSED if isinstance(error, RefusedError) else PAUSES[min(failures, len(PAUSES) - 1)]
                failures += 1
                await asyncio.sleep(pause * self._random.uniform(0.8, 1.2))
        finally:
            self._become("stopped")
            self.connected.clear()
            async with asyncio.timeout(CLOSING):
                await self.channel.close()

    def _lose(self, error: LimpetError) -> None:
        log.warning("channel %s: %s", ":".join(self.name), error)
        self.down(str(error))
        if isinstance(error, RefusedError):
            self._become("refused")

    async def receive(self, arrival: Arrival) -> None:
        """Raises `ValueError` for an address of another channel: no answer to it could ever arrive."""
        one, ours = arrival.address, self.channel
        if (one.channel, one.account) != (ours.name, ours.account):
            raise ValueError(f"a message of {one.channel}:{one.account} came in over {ours.name}:{ours.account}")
        await self._desk.take(self, arrival)
        self._received = self._clock.now()

    def up(self) -> None:
        if not self.connected.is_set():
            self._up_at = self._clock.monotonic()
            self._error = ""
            self._become("connected")
            self.connected.set()

    def down(self, reason: str) -> None:
        self.connected.clear()
        self._error = reason
        self._become("degraded")

    def sent(self) -> None:
        """A message has arrived on the platform."""
        self._sent = self._clock.now()

    def _become(self, state: State) -> None:
        if state != self._state:
            self._state, self._since = state, self._clock.now()
