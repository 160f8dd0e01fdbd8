"""Real processes for the crash suite, and what they leave behind."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import apsw

ROOT = Path(__file__).parents[2]
GUARD = 60.0
"""Seconds after which a test that waits for a process gives up."""


async def start(folder: Path, url: str, kill_at: int, *words: str, **environ: str) -> asyncio.subprocess.Process:
    """Start `child.py`."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.crash.child",
        str(folder),
        url,
        str(kill_at),
        *words,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONWARNINGS": "ignore", **environ},
    )


async def limpet(folder: Path, *arguments: str, **environment: str) -> asyncio.subprocess.Process:
    """Start the real program on the home `folder`."""
    known = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "limpet",
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**known, "LIMPET_HOME": str(folder), **environment},
    )


async def finish(process: asyncio.subprocess.Process) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    output, errors = await asyncio.wait_for(process.communicate(), GUARD)
    return process.returncode or 0, output.decode().strip(), errors.decode().strip()


async def child(folder: Path, url: str, kill_at: int, *words: str, **environ: str) -> tuple[int, str]:
    """Run `child.py` to its end; its exit code and what it printed."""
    code, output, _ = await finish(await start(folder, url, kill_at, *words, **environ))
    return code, output


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition that other processes bring about."""
    async with asyncio.timeout(GUARD):
        while not condition():
            await asyncio.sleep(0.02)


def rows(folder: Path, query: str) -> list[tuple[object, ...]]:
    """What the database of a home says."""
    connection = apsw.Connection(str(folder / "limpet.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
