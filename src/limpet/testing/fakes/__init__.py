"""Strict fake model services: a test starts one in its process, a person with `python -m limpet.testing.fakes`."""

from limpet.testing.fakes import faults
from limpet.testing.fakes.anthropic import FakeAnthropic
from limpet.testing.fakes.bedrock import FakeBedrock
from limpet.testing.fakes.gemini import FakeGemini
from limpet.testing.fakes.media import FakeMedia
from limpet.testing.fakes.openai import FakeAzure, FakeOpenAI
from limpet.testing.fakes.responses import FakeResponses
from limpet.testing.fakes.script import Call, Reply, Rules, Seen, load_script

__all__ = [
    "Call",
    "FakeAnthropic",
    "FakeAzure",
    "FakeBedrock",
    "FakeGemini",
    "FakeMedia",
    "FakeOpenAI",
    "FakeResponses",
    "Reply",
    "Rules",
    "Seen",
    "faults",
    "load_script",
]
