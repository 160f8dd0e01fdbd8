"""The browser in a turn of the real program."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from limpet.testing.fakes.openai import FakeOpenAI
from limpet.testing.fakes.script import Call, Reply
from tests.cli.program import at, limpet
from tests.tools.browser.pages import GUARD, needs_chromium, site

CONFIG = """[net]
allow_cidrs = ["127.0.0.0/8"]
"""


@needs_chromium
@pytest.mark.parametrize("profile", ["full", "coding"])
def test_a_turn_reads_a_page_where_the_profile_has_a_browser(tmp_path: Path, profile: str) -> None:
    (tmp_path / "config.toml").write_text(f"{CONFIG}[policy]\nprofile = '{profile}'\n")
    asked: list[str] = []

    async def main() -> None:
        async with asyncio.timeout(GUARD), site({"/": "<title>News</title><h1>Limpets cling on</h1>"}) as there:

            def script(request: object) -> Reply:
                asked.append(str(request))
                opening = Call("browser", json.dumps({"action": "open", "url": there.url}))
                return Reply(calls=(opening,)) if len(asked) == 1 else Reply(text=("read it",))

            async with FakeOpenAI(script) as model:
                ended = await limpet(tmp_path, "agent", "-m", f"What is new at {there.url} ?", **at(model))
        assert ended.code == 0, ended.err

    asyncio.run(main())
    assert ("Limpets cling on" in asked[1]) == (profile == "full")
    assert ("Use a web browser" in asked[0]) == (profile == "full")
