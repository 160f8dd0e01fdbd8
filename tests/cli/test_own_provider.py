"""A provider that the program has never heard of, by configuration alone."""

from __future__ import annotations

import asyncio
from pathlib import Path

from limpet.testing.fakes.openai import FakeOpenAI
from limpet.testing.fakes.script import Reply, Rules
from tests.cli.program import ask, limpet, run

CONFIG = """
[agent]
model = "lab/dreamer-9"
[providers.lab]
base_url = "{address}"
api_key = "sk-test"
streaming = false
[models.catalog."lab/dreamer-9"]
window = 50000
max_output = 77
price = {{ input = 10, output = 100 }}
"""


def test_a_made_up_provider_answers_with_its_own_ways_window_and_price(tmp_path: Path) -> None:
    async def main():
        async with FakeOpenAI([Reply(text=("hello",))], rules=Rules(streams=False)) as server:
            (tmp_path / "config.toml").write_text(CONFIG.format(address=server.base_url))
            answered = await limpet(tmp_path, "agent", "-m", "hi", LIMPET_MODELS__PURPOSES__CHAT__MAX_TOKENS="500")
            spent = await limpet(tmp_path, "usage", "--by", "model", "--format", "csv")
            return answered, spent, server.requests[0].body

    answered, spent, body = asyncio.run(main())
    assert (answered.code, answered.out.strip()) == (0, "hello"), answered.err
    assert "assumed" not in answered.err
    assert (body["model"], body["stream"], body["max_tokens"]) == ("dreamer-9", False, 77)
    assert "lab/dreamer-9,1," in spent.out
    assert "0.002" in spent.out  # 100 tokens in, 10 out


def test_an_address_that_is_none_is_refused_with_the_reason(tmp_path: Path) -> None:
    for address in ("ftp://x", "localhost:8080", "https://"):
        (tmp_path / "config.toml").write_text(f'[providers.lab]\nbase_url = "{address}"\n')
        ended = run(tmp_path, "config", "validate")
        assert ended.code == 2
        assert "providers.lab.base_url: expected an address that begins with http:// or https://" in ended.err
    ended = run(tmp_path, "config", "set", "providers.lab.base_url", "http://127.0.0.1:1/v1")
    assert ended.code == 0


def test_a_wrong_address_is_never_written(tmp_path: Path) -> None:
    asked = ("onboard", "--yes", "--no-test", "--provider", "custom", "--base-url", "ftp://x", "--model", "m")
    for arguments in (asked, ("config", "set", "providers.lab.base_url", "ftp://x")):
        ended = run(tmp_path, *arguments)
        assert ended.code == 2
        assert "an address that begins with http:// or https://" in ended.err
    assert not (tmp_path / "config.toml").exists()


def test_half_a_price_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[models.catalog."lab/m"]\nprice = { input = 1 }\n')
    ended = run(tmp_path, "models", "list")
    assert ended.code == 2
    assert "input and output must be set together" in ended.err


def test_an_assumed_window_is_said_once(tmp_path: Path) -> None:
    said = [
        ask(tmp_path, [Reply(text=("hi",))], "agent", "-m", "hello", LIMPET_MODEL="openai/brand-new").err
        for _ in range(2)
    ]
    assert [text.count("tokens are assumed") for text in said] == [1, 0]
