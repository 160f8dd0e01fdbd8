"""The local embedder: a process that ends with its parent, after idleness, and on request."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from limpet.errors import StoreError
from limpet.memory.local_embedder import LocalEmbedder, is_installed

ECHO = """
import os, sys, json, base64, array, select
while select.select([0], [], [], float(sys.argv[1]))[0] and (line := sys.stdin.readline()):
    texts = json.loads(line)["texts"]
    if "die" in texts: os._exit(7)
    if "slow" in texts: __import__("time").sleep(0.2)
    data = [base64.b64encode(array.array("f", [len(t), 1]).tobytes()).decode() for t in texts]
    print(json.dumps({"vectors": data}), flush=True)
"""
COMMAND = (sys.executable, "-c", ECHO)


def test_texts_become_vectors_and_the_process_is_kept() -> None:
    async def main() -> None:
        embedder = LocalEmbedder(command=COMMAND)
        assert not embedder.is_ready
        assert [list(one) for one in await embedder.embed(["a", "abc"])] == [[1, 1], [3, 1]]
        assert embedder.is_ready
        assert len(await embedder.embed([])) == 0
        await embedder.close()
        with pytest.raises(StoreError, match="closed"):
            await embedder.embed(["a"])

    asyncio.run(main())


def test_a_question_given_up_does_not_mix_with_the_next() -> None:
    async def main() -> None:
        embedder = LocalEmbedder(command=COMMAND)
        await embedder.embed(["a"])
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await embedder.embed(["slow"])
        assert [list(one) for one in await embedder.embed(["ab"])] == [[2, 1]]
        await embedder.close()

    asyncio.run(main())


def test_one_that_dies_is_told_and_started_again() -> None:
    async def main() -> None:
        embedder = LocalEmbedder(command=COMMAND)
        with pytest.raises(StoreError, match="code 7"):
            await embedder.embed(["die"])
        assert len(await embedder.embed(["a"])) == 1
        await embedder.close()

    asyncio.run(main())


def test_closing_while_it_is_asked_ends_both() -> None:
    async def main() -> None:
        embedder = LocalEmbedder(command=COMMAND)
        task = asyncio.create_task(embedder.embed(["slow"]))
        while embedder._process is None:  # pyright: ignore[reportPrivateUsage]
            await asyncio.sleep(0.01)
        await embedder.close()
        with pytest.raises(StoreError):
            await task

    asyncio.run(main())


PARENT = """
import asyncio, sys, time
from limpet.memory.local_embedder import LocalEmbedder
async def main():
    embedder = LocalEmbedder(command=(sys.executable, "-c", sys.argv[1]))
    await embedder.embed(["a"])
    print(embedder._process.pid, flush=True)
    time.sleep(60)
asyncio.run(main())
"""


def test_it_ends_when_its_parent_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT, ECHO], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        os.kill(parent.pid, signal.SIGKILL)
    deadline = time.monotonic() + 20
    while _runs(child):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not is_installed(), reason="needs the extra vectors")
def test_the_real_one_puts_like_beside_like_across_languages() -> None:
    async def main() -> None:
        embedder = LocalEmbedder(idle=30)
        cat, katze, tax = await embedder.embed(["The cat sleeps.", "猫在睡觉。", "Taxes are due in May."])

        def like(one: object, other: object) -> float:
            assert isinstance(one, type(cat))
            assert isinstance(other, type(cat))
            return sum(a * b for a, b in zip(one, other, strict=True))

        assert like(cat, katze) > 2 * like(cat, tax)
        await embedder.close()

    asyncio.run(main())
