"""A strict fake of Telegram's Bot API: `FakeTelegram` serves it, `chats` keeps what people see, `html` reads markup."""

from limpet.testing.fakes.telegram.chats import Fault, Posted, Way
from limpet.testing.fakes.telegram.server import FakeTelegram

__all__ = ["FakeTelegram", "Fault", "Posted", "Way"]
