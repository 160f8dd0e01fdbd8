"""A strict fake of Slack: `FakeSlack` serves the Web API and Socket Mode, `rooms` keeps what people see."""

from limpet.testing.fakes.slack.rooms import Fault, Posted, Way
from limpet.testing.fakes.slack.server import FakeSlack

__all__ = ["FakeSlack", "Fault", "Posted", "Way"]
