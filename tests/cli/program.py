"""The real program in a process of its own, on a home of its own, against a fake model."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from msgspec import Struct

from limpet.testing.fakes.openai import FakeOpenAI
from limpet.testing.fakes.script import Script

GUARD = 60.0
KEEP = ("PATH", "HOME", "TMPDIR", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE")


class Ended(Struct, frozen=True):
    code: int
    out: str
    err: str


def environment(home: Path, **more: str) -> dict[str, str]:
    """Without settings, keys and locale of whoever runs the tests."""
    return {**{name: os.environ[name] for name in KEEP if name in os.environ}, "LIMPET_HOME": str(home), **more}


def at(server: FakeOpenAI) -> dict[str, str]:
    """What a person sets to talk to `server`."""
    return {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": server.key, "LIMPET_MODEL": "openai/gpt-5"}


async def limpet(home: Path, *arguments: str | bytes, stdin: bytes = b"", **environ: str) -> Ended:
    """Run `limpet` with `arguments` to its end."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "limpet",
        *arguments,
        stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment(home, **environ),
    )
    out, err = await asyncio.wait_for(process.communicate(stdin or None), GUARD)
    return Ended(process.returncode or 0, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))


def run(home: Path, *arguments: str | bytes, stdin: bytes = b"", **environ: str) -> Ended:
    """The same where no fake is needed."""
    return asyncio.run(limpet(home, *arguments, stdin=stdin, **environ))


def ask(
    home: Path, script: Script, *arguments: str | bytes, stdin: bytes = b"", key: str = "", **environ: str
) -> Ended:
    """Run `limpet` against a fake that answers by `script`. `key`: another one than the fake takes."""

    async def main() -> Ended:
        async with FakeOpenAI(script) as server:
            there = at(server) | ({"OPENAI_API_KEY": key} if key else {})
            return await limpet(home, *arguments, stdin=stdin, **(there | environ))

    return asyncio.run(main())
