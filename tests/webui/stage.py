"""A gateway with a page, over a strict fake model, in a process of its own: NiceGUI is one to a process.

`python -m tests.webui.stage HOME [neat]` prints the port and serves until its input ends. What the model does is
named in the message: `tool` calls a tool, `code`, `long` and `slow` are answers of that kind, all else is repeated.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import sys
from pathlib import Path

from limpet.cli.group import Invocation
from limpet.household import open_gateway
from limpet.testing.fakes import FakeOpenAI, Reply
from limpet.testing.fakes.script import Call, Seen, pieces
from tests.webui.props import lay_out, lay_out_neatly

CODE = "Here:\n\n```python\nprint('a < b')\n```\n\n| x | y |\n|---|---|\n| 1 | **2** |\n\n1. one\n2. two\n   - deep\n"

TALK = {
    "What is a limpet?": (
        "A **limpet** is a snail that holds on to its rock.\n\n- It grazes at high tide, and *always* returns to its"
        " own spot.\n- Its teeth are the strongest material known in nature.\n\n"
        "> So a limpet forgets nothing that matters."
    ),
    "How do I count them?": (
        "From a list of sightings:\n\n```python\nfrom collections import Counter\n\n"
        "Counter(one.rock for one in sightings)\n```\n\n| rock | limpets |\n|---|---|\n| north | 41 |\n| south | 17 |"
    ),
}


def answer(seen: Seen) -> Reply:
    """What the fake model says to the newest message."""
    assert seen.body is not None
    messages = seen.body["messages"]
    assert isinstance(messages, list)
    last = messages[-1]
    assert isinstance(last, dict)
    if last["role"] == "tool":
        return Reply(text=(f"It said: {str(last['content'])[:80]}",))
    said = _said(last["content"])
    if said.startswith("tool "):
        name, _, arguments = said.removeprefix("tool ").partition(" ")
        return Reply(calls=(Call(name, arguments or "{}"),))
    if said == "code":
        return Reply(text=tuple(pieces(CODE, 6)), thinking="What is wanted is code.")
    if said in TALK:
        return Reply(text=tuple(pieces(TALK[said], 8)), thinking="A question about the sea.", cached=80)
    if said == "slow":
        return Reply(text=("I begin", " and go on", " and on"), stall_after=2)
    if said == "long":
        return Reply(text=tuple(f"word{number} " for number in range(60)), gap=0.01)
    return Reply(text=(f"echo: {said}",))


def _said(content: object) -> str:
    """The person's own words in the content of a message."""
    text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)  # pyright: ignore
    bare = re.sub(r"<runtime>.*?</runtime>", "\n", text, flags=re.DOTALL)
    lines = [one for one in bare.splitlines() if one.strip()]
    return lines[-1] if lines else ""


async def serve(home: Path, *, neat: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    await (lay_out_neatly if neat else lay_out)(home)
    async with FakeOpenAI(answer) as model:
        (home / "config.toml").write_text(
            f'agent.model = "lab/dreamer"\ngateway.port = {port}\ngateway.drain = 0.2\n'
            f'[providers.lab]\nbase_url = "{model.base_url}"\napi_key = "sk-test"\n'
            '[[policy.rules]]\nname = "ask first"\ntool = "write_file"\ndecision = "ask"\n'
        )
        async with open_gateway(Invocation(config=str(home / "config.toml"))) as gateway:
            stop = asyncio.Event()
            running = asyncio.create_task(gateway.run(stop))
            print(json.dumps({"port": port, "model": model.base_url}), flush=True)
            await asyncio.to_thread(sys.stdin.read)
            stop.set()
            await running


if __name__ == "__main__":
    root = Path(sys.argv[1])
    os.environ["LIMPET_HOME"] = str(root)
    asyncio.run(serve(root, neat="neat" in sys.argv[2:]))
