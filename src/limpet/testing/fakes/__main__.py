"""`python -m limpet.testing.fakes [--port N] [--script FILE]`: both fakes until Ctrl-C; prints their addresses."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
from pathlib import Path

from limpet.testing.fakes.anthropic import FakeAnthropic
from limpet.testing.fakes.default import converse
from limpet.testing.fakes.openai import FakeOpenAI
from limpet.testing.fakes.script import load_script


async def serve(port: int, script: Path | None) -> None:
    """OpenAI's fake on `port`, Anthropic's on the next one (0: any free ones)."""
    replies = converse if script is None else load_script(script)
    async with (
        FakeOpenAI(replies, port=port) as openai,
        FakeAnthropic(replies, port=port and port + 1) as anthropic,
    ):
        print(f"OPENAI_BASE_URL={openai.base_url} OPENAI_API_KEY={openai.key}", flush=True)
        print(
            f"ANTHROPIC_BASE_URL={anthropic.base_url.removesuffix('/v1')} ANTHROPIC_API_KEY={anthropic.key}", flush=True
        )
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m limpet.testing.fakes", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="of the OpenAI fake; the Anthropic fake takes the next one")
    parser.add_argument("--script", type=Path, help="a JSON file with a list of replies")
    arguments = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(arguments.port, arguments.script))


if __name__ == "__main__":
    main()
