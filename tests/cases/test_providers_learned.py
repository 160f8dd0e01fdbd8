"""C12 through the whole program: what a service refuses is learned once, and known after a restart."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from limpet.cli.door import Entrance, Nobody
from limpet.cli.group import Invocation
from limpet.cli.talk import Talk
from limpet.store.learned import lessons
from limpet.testing.fakes.openai import FakeOpenAI
from limpet.testing.fakes.script import Reply, Rules
from limpet.testing.trace import Trace
from limpet.types.envelope import OutboxRow
from limpet.wiring import open_assistant

HELLO = Reply(text=("hello",))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY", "DEEPSEEK_API_KEY", "LIMPET_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LIMPET_HOME", str(tmp_path))
    return tmp_path


async def ask(text: str, trace: Trace) -> list[str]:
    """One process that says `text` in the main session; what it answered."""
    shown: list[OutboxRow] = []
    async with open_assistant(Invocation(), Entrance(emit=trace.emit, approvals=Nobody())) as services:
        await Talk(services, "main", shown.append).say(text)
    return [row.text for row in shown]


def configure(home: Path, server: FakeOpenAI, reference: str) -> None:
    provider = reference.partition("/")[0]
    (home / "config.toml").write_text(
        f'[agent]\nmodel = "{reference}"\n[models.purposes.chat]\ntemperature = 0.5\nmax_tokens = 500\n'
        f'[providers.{provider}]\napi_key = "sk-test"\nbase_url = "{server.base_url}"\n',
        encoding="utf-8",
    )


def two_processes(home: Path, reference: str, *forbidden: str) -> tuple[list[dict], list[dict], Trace, Trace]:
    """The bodies that each of two processes sent to a service that refuses `forbidden`, and what they were told."""

    async def main():
        async with FakeOpenAI([HELLO] * 2, rules=Rules(forbidden=forbidden)) as server:
            configure(home, server, reference)
            first, second = Trace(), Trace()
            assert await ask("hi", first) == ["hello"]
            count = len(server.requests)
            assert await ask("again", second) == ["hello"]
            bodies = [seen.body or {} for seen in server.requests]
            return bodies[:count], bodies[count:], first, second

    return asyncio.run(main())


def test_c12b_a_known_model_is_asked_rightly_at_once(home: Path) -> None:
    first, second, *_ = two_processes(home, "openai/gpt-5-mini", "max_tokens", "temperature")
    assert len(first) == len(second) == 1
    assert all("max_completion_tokens" in body for body in first + second)


def test_c12b_an_unknown_model_teaches_it_once(home: Path) -> None:
    first, second, trace, later = two_processes(home, "somewhere/new-model", "max_tokens", "temperature")
    assert (len(first), len(second)) == (3, 1)
    for body in (first[-1], second[-1]):
        assert body["max_completion_tokens"] == 500
        assert not {"max_tokens", "temperature"} & set(body)
    assert trace.text.count("does not take `max_tokens`") == 1
    assert "does not take" not in later.text


def test_c12c_a_server_with_the_old_name_only(home: Path) -> None:
    first, second, *_ = two_processes(home, "openai/gpt-5-mini", "max_completion_tokens")
    assert (len(first), len(second)) == (2, 1)
    assert (second[-1]["max_tokens"], "max_completion_tokens" in second[-1]) == (500, False)


def test_c12c_a_local_model_is_asked_rightly_at_once(home: Path) -> None:
    first, *_ = two_processes(home, "ollama/llama", "max_completion_tokens")
    assert [body["max_tokens"] for body in first] == [500]


def test_c12_a_field_that_is_not_ours_is_no_lesson(home: Path) -> None:
    async def main() -> list[str]:
        async with FakeOpenAI([], rules=Rules(forbidden=("messages",))) as server:
            configure(home, server, "somewhere/m")
            answers = await ask("hi", Trace())
            assert len(server.requests) == 1
            return answers

    assert "messages" in asyncio.run(main())[0]


def test_c12_the_window_that_an_overflow_names_is_kept(home: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI([], rules=Rules(max_characters=6_000)) as server:
            configure(home, server, "somewhere/m")
            await ask("hi " * 4_000, Trace())
            async with open_assistant(Invocation(), Entrance(emit=Trace().emit, approvals=Nobody())) as services:
                assert (await services.models.get("")).profile.window == 1_500
                assert [lesson.window for lesson in services.store.read(lessons)] == [1_500]

    asyncio.run(main())
