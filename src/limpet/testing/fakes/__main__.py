"""`python -m limpet.testing.fakes [--port N] [--script FILE]`: all fakes until Ctrl-C; prints their addresses."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

from limpet.testing.fakes.anthropic import FakeAnthropic
from limpet.testing.fakes.bedrock import FakeBedrock
from limpet.testing.fakes.default import converse
from limpet.testing.fakes.gemini import FakeGemini
from limpet.testing.fakes.openai import FakeAzure, FakeOpenAI
from limpet.testing.fakes.responses import FakeResponses
from limpet.testing.fakes.script import load_script
from limpet.testing.fakes.server import FakeServer

FAKES: tuple[tuple[Callable[..., FakeServer], str, str], ...] = (
    (FakeOpenAI, "OPENAI_BASE_URL", "OPENAI_API_KEY"),
    (FakeAnthropic, "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
    (FakeResponses, "RESPONSES_BASE_URL", "RESPONSES_API_KEY"),
    (FakeGemini, "GEMINI_BASE_URL", "GEMINI_API_KEY"),
    (FakeBedrock, "BEDROCK_BASE_URL", "AWS_BEARER_TOKEN_BEDROCK"),
    (FakeAzure, "AZURE_OPENAI_BASE_URL", "AZURE_OPENAI_API_KEY"),
)


async def serve(port: int, script: Path | None) -> None:
    """OpenAI's fake on `port`, the others on the next ones (0: any free ones): see `FAKES`."""
    replies = converse if script is None else load_script(script)
    async with contextlib.AsyncExitStack() as stack:
        for at, (kind, url, key) in enumerate(FAKES):
            fake = await stack.enter_async_context(kind(replies, port=port and port + at))
            base = fake.base_url.removesuffix("/v1") if kind is FakeAnthropic else fake.base_url
            print(f"{url}={base} {key}={fake.key}", flush=True)
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m limpet.testing.fakes", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="of the OpenAI fake; the others take the next ones")
    parser.add_argument("--script", type=Path, help="a JSON file with a list of replies")
    arguments = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(arguments.port, arguments.script))


if __name__ == "__main__":
    main()
