"""C16 through the whole program: keys and fallbacks in the configuration, several services."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from limpet.cli.door import Entrance, Nobody
from limpet.cli.group import Invocation
from limpet.cli.talk import Talk
from limpet.errors import ConfigError
from limpet.testing.fakes.openai import FakeOpenAI
from limpet.testing.fakes.script import Reply
from limpet.testing.trace import Trace
from limpet.types.envelope import OutboxRow
from limpet.wiring import open_assistant

LIMITED = Reply(status=429, headers={"Retry-After": "1800"}, body={"error": {"message": "slow down"}})
BROKEN = Reply(status=500, body={"error": {"message": "internal error"}})


async def ask(text: str, trace: Trace) -> list[OutboxRow]:
    """One process that says `text` in the main session; what it was shown."""
    shown: list[OutboxRow] = []
    async with open_assistant(Invocation(), Entrance(emit=trace.emit, approvals=Nobody())) as services:
        talk = Talk(services, "main", shown.append)
        await talk.say(text)
    return shown


def configure(home: Path, *servers: FakeOpenAI) -> None:
    tables = "".join(
        f'[providers.{name}]\napi_key = "sk-test"\nbase_url = "{server.base_url}"\n'
        for name, server in zip("abc", servers, strict=False)
    )
    (home / "config.toml").write_text(
        f'[agent]\nmodel = "a/m"\n[models]\nfallbacks = ["a/other", "b/m", "c/m"]\n{tables}', encoding="utf-8"
    )


def test_c16_the_chain_is_walked_once_and_remembered_over_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIMPET_HOME", str(tmp_path))

    async def main() -> None:
        async with (
            FakeOpenAI([LIMITED] * 9) as a,
            FakeOpenAI([BROKEN] * 9) as b,
            FakeOpenAI([Reply(text=("from c",))] * 9) as c,
        ):
            configure(tmp_path, a, b, c)
            trace = Trace()
            assert [row.text for row in await ask("hi", trace)] == ["from c"]
            assert len(a.requests) == 1
            assert len(b.requests) <= 2
            assert "slow down" in trace.text
            first = len(b.requests)
            assert [row.text for row in await ask("again", Trace())] == ["from c"]
            assert (len(a.requests), len(b.requests), len(c.requests)) == (1, first, 2)

    asyncio.run(main())


def test_c16_when_all_fail_each_reason_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMPET_HOME", str(tmp_path))

    async def main() -> None:
        async with FakeOpenAI([LIMITED] * 9) as a, FakeOpenAI([BROKEN] * 9) as b, FakeOpenAI([BROKEN] * 9) as c:
            configure(tmp_path, a, b, c)
            (notice,) = await ask("hi", Trace())
            assert notice.kind == "notice"
            for line in ("- a/m: slow down", "- a/other: rests", "- b/m: internal error", "- c/m: internal error"):
                assert line in notice.text

    asyncio.run(main())


def test_a_chosen_model_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMPET_HOME", str(tmp_path))

    async def main() -> None:
        async with FakeOpenAI([BROKEN] * 9) as a, FakeOpenAI([Reply(text=("from b",))] * 9) as b:
            configure(tmp_path, a, b)
            shown: list[OutboxRow] = []
            entrance = Entrance(emit=Trace().emit, approvals=Nobody(), model="a/m")
            async with open_assistant(Invocation(), entrance) as services:
                assert await Talk(services, "main", shown.append, model="a/m").say("hi") == 3
            assert "internal error" in shown[0].text
            assert b.requests == []

    asyncio.run(main())


def test_headers_of_the_configuration_go_with_each_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMPET_HOME", str(tmp_path))
    monkeypatch.setenv("TEAM", "blue")

    async def main() -> None:
        async with FakeOpenAI([Reply(text=("hello",))]) as server:
            configure(tmp_path, server)
            with open(tmp_path / "config.toml", "a", encoding="utf-8") as file:
                file.write('[providers.a.headers]\nX-Team = "env:TEAM"\n')
            await ask("hi", Trace())
            assert server.requests[0].headers["x-team"] == "blue"

    asyncio.run(main())


def test_two_conversations_that_begin_at_once_share_one_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMPET_HOME", str(tmp_path))

    async def main() -> None:
        async with FakeOpenAI([]) as server:
            configure(tmp_path, server)
            async with open_assistant(Invocation(), Entrance(emit=Trace().emit, approvals=Nobody())) as services:
                one, other = await asyncio.gather(services.models.get("a/m"), services.models.get("a/m"))
                assert one is other

    asyncio.run(main())


def test_a_conversation_whose_model_is_gone_says_so_and_can_be_given_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIMPET_HOME", str(tmp_path))

    async def command(text: str, *, model: str = "") -> str:
        shown: list[OutboxRow] = []
        entrance = Entrance(emit=Trace().emit, approvals=Nobody(), model=model)
        async with open_assistant(Invocation(), entrance) as services:
            talk = Talk(services, "main", shown.append, model=model)
            await talk.check_model()
            await talk.say(text)
        return shown[0].text

    async def main() -> None:
        async with FakeOpenAI([]) as a, FakeOpenAI([]) as b:
            configure(tmp_path, a, b)
            await command("/model b/x")
            configure(tmp_path, a)
            with pytest.raises(ConfigError, match="set to b/x") as caught:
                await command("hi")
            assert "/model" in caught.value.present()
            assert "a/m" in await command("/model default", model="a/m")
            assert "a/m" in await command("/model")

    asyncio.run(main())
