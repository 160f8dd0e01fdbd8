"""The fake provider in a process of its own, so that its CPU is not counted, and the homes that speak to it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]


class Fake(NamedTuple):
    """A running fake. `body()` is the newest request's."""

    base_url: str
    key: str
    record: Path

    def body(self) -> bytes:
        return self.record.read_bytes()


@contextlib.contextmanager
def fake() -> Generator[Fake]:
    """Start the fake; it ends with the block."""
    with folder() as place:
        record = place / "body.json"
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.fake_server", str(record)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        try:
            base_url, key = process.stdout.readline().split()
            yield Fake(base_url, key, record)
        finally:
            process.terminate()
            process.wait(10)
            process.stdout.close()


@contextlib.contextmanager
def folder() -> Generator[Path]:
    """A folder for the length of the block."""
    place = Path(tempfile.mkdtemp(prefix="limpet-bench-"))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def environment(home: Path, server: Fake, **more: str) -> dict[str, str]:
    """The whole environment of a process that works in `home`: nothing of the caller's may steer it."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TZ", "TMPDIR") if name in os.environ}
    return {
        **kept,
        "HOME": str(home),
        "LIMPET_HOME": str(home / "limpet"),
        "OPENAI_BASE_URL": server.base_url,
        "OPENAI_API_KEY": server.key,
        "LIMPET_MODEL": "openai/fake-chat",
        "LIMPET_PROVIDERS__OPENAI__WINDOW": "4000000",  # nothing is summarised
        **more,
    }
