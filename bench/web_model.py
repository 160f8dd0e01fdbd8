"""`python -m bench.web_model`: a model whose every piece of text is the moment at which it was sent (ms).

Prints its address, and serves until it is ended.
"""

from __future__ import annotations

import asyncio
import json
import time

from aiohttp import web

PIECES, GAP = 40, 0.05
"""Pieces of an answer, and seconds between two."""


async def answer(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for _ in range(PIECES):
        delta = {"index": 0, "delta": {"content": f"{time.time() * 1000:.0f} "}, "finish_reason": None}
        await response.write(b"data: " + json.dumps({"id": "1", "choices": [delta]}).encode() + b"\n\n")
        await asyncio.sleep(GAP)
    end = {"id": "1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    await response.write(b"data: " + json.dumps(end).encode() + b"\n\ndata: [DONE]\n\n")
    return response


async def main() -> None:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    address = runner.addresses[0]
    print(f"http://127.0.0.1:{address[1]}/v1", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
