"""A strict fake of Discord: `FakeDiscord` serves REST and gateway, `rooms` keeps what people see."""

from limpet.testing.fakes.discord.rooms import Fault, Posted, Way
from limpet.testing.fakes.discord.server import FakeDiscord

__all__ = ["FakeDiscord", "Fault", "Posted", "Way"]
