"""`python -m bench.fake_server FILE`: the strict fake, with one answer for all; the newest body goes to FILE."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from limpet.testing.fakes.openai import FakeOpenAI
from limpet.testing.fakes.script import Call, Reply, Seen
from limpet.testing.fakes.shape import fields, items

WORDS = ("A limpet ", "holds on ", "to its rock ", "through any storm. ")
ANSWER = WORDS * 5
"""20 pieces, 270 characters."""
USE_A_TOOL = "Write a file."


class Script:
    """Answers in text; a message that says so gets a call of `write_file` first, of a new file each time."""

    def __init__(self, record: str) -> None:
        self._record = record
        self._files = 0
        self.server: FakeOpenAI | None = None

    def __call__(self, seen: Seen) -> Reply:
        if self.server is not None:
            self.server.requests.clear()
        with open(f"{self._record}.new", "wb") as file:
            file.write(seen.raw)
        os.replace(f"{self._record}.new", self._record)
        last = fields(items((seen.body or {}).get("messages"), "messages")[-1], "message")
        if last.get("role") == "user" and str(last.get("content")).startswith(USE_A_TOOL):
            self._files += 1
            call = Call("write_file", f'{{"path": "notes/{self._files}.md", "content": "Number {self._files}.\\n"}}')
            return Reply(calls=(call,))
        return Reply(text=ANSWER)


async def serve(record: str) -> None:
    script = Script(record)
    async with FakeOpenAI(script) as server:
        script.server = server
        print(server.base_url, server.key, flush=True)
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
