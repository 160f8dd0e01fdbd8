"""The client in docs/api.md runs as it stands."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path

from tests.server.api.clients import made
from tests.server.test_server import served

PAGE = Path(__file__).resolve().parents[3] / "docs/api.md"


def test_the_client_of_the_docs_gets_an_answer(home: Path) -> None:
    (client,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)

    async def main() -> str:
        async with served(home) as here:
            address = f"http://127.0.0.1:{here.port}"
            environ = {**os.environ, "LIMPET_URL": address, "LIMPET_TOKEN": await made(here)}
            pipe = asyncio.subprocess.PIPE
            process = await asyncio.create_subprocess_exec(sys.executable, "-c", client, env=environ, stdout=pipe)
            async with asyncio.timeout(60):
                out, _ = await process.communicate()
            return out.decode().strip()

    assert asyncio.run(main()) == "echo: hello"
