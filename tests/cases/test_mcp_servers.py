"""C59 through the whole program: servers that exit, die, answer nonsense or nothing at all."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec import structs

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from limpet.assistant import commands_look
from limpet.cli.door import Entrance, Nobody
from limpet.cli.group import Invocation
from limpet.cli.talk import Talk
from limpet.errors import ToolError
from limpet.mcp.kept import Records
from limpet.mcp.server import Server
from limpet.mcp.spec import ServerSpec
from limpet.mcp.tool import ServerTool
from limpet.testing.clock import FakeClock
from limpet.testing.context import tool_context
from limpet.testing.fakes.openai import FakeOpenAI
from limpet.testing.fakes.script import Call, Reply
from limpet.testing.mcp import FakeServer
from limpet.testing.trace import Trace
from limpet.types.ports import Tool
from limpet.types.tool import ToolResult
from limpet.wiring import open_assistant

REFUSAL = b"HTTP/1.1 530 Origin error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@asynccontextmanager
async def http_server(answer: bytes | None) -> AsyncIterator[str]:
    """The address of a server that gives every request this answer, or none ever."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if answer is None:
            await reader.read()
        else:
            writer.write(answer)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"


def configure(home: Path, model: FakeOpenAI, **servers: dict[str, object]) -> None:
    lines = ["[agent]", 'model = "a/m"', "[providers.a]", 'api_key = "sk-test"', f'base_url = "{model.base_url}"']
    lines += ["[mcp]", "wait = 0.5"]
    for name, table in servers.items():
        lines += [f"[mcp.servers.{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
    (home / "config.toml").write_text("\n".join(lines), encoding="utf-8")


def program(fake: FakeServer, **more: object) -> dict[str, object]:
    return {"command": fake.command, "args": list(fake.args), **more}


async def run_tool(tools: list[Tool], name: str, workspace: Path) -> ToolResult:
    (tool,) = [tool for tool in tools if tool.spec.name == name]
    return await tool.bind("{}", workspace=str(workspace)).run(tool_context(workspace))


def test_c59_servers_that_fail_hold_up_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMPET_HOME", str(tmp_path))
    a, b = FakeServer(tmp_path / "a", exit=1), FakeServer(tmp_path / "b", ["pid", "hang"])

    async def main() -> None:
        async with FakeOpenAI([]) as model, http_server(REFUSAL) as refusing, http_server(None) as silent:
            configure(tmp_path, model, a=program(a), b=program(b), c={"url": refusing}, d={"url": silent, "timeout": 1})
            trace = Trace()
            began = time.monotonic()
            async with open_assistant(Invocation(), Entrance(emit=trace.emit, approvals=Nobody())) as services:
                assert time.monotonic() - began < 30
                async with asyncio.timeout(20):
                    while not any(isinstance(tool, ServerTool) for tool in services.tools):
                        await asyncio.sleep(0.02)
                first = int((await run_tool(list(services.tools), "mcp_b_pid", tmp_path)).text.split("\n")[2])
                hanging = asyncio.create_task(run_tool(list(services.tools), "mcp_b_hang", tmp_path))
                await asyncio.sleep(0.1)
                os.kill(first, signal.SIGKILL)
                with pytest.raises(ToolError, match="b ended in the middle of hang"):
                    await hanging
                again = int((await run_tool(list(services.tools), "mcp_b_pid", tmp_path)).text.split("\n")[2])
                assert again != first
                began = time.monotonic()
            assert time.monotonic() - began < 20
            assert "The tools of the MCP server d are missing" in trace.text
            assert 1 <= len(a.pids) <= 5

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["a", "c", "d"])
def test_c59_a_call_on_a_server_that_fails_names_it_and_the_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("LIMPET_HOME", str(tmp_path))
    fake = FakeServer(tmp_path / "a", exit=1, say="no licence\n")
    words = {"a": "no licence", "c": "530", "d": "did not answer"}[kind]

    async def main() -> None:
        async with http_server(REFUSAL if kind == "c" else None) as url:
            spec = (
                ServerSpec(name="x", command=fake.command, args=fake.args) if kind == "a" else ServerSpec("x", url=url)
            )
            server = Server(structs.replace(spec, timeout=3.0), Records(tmp_path), clock=FakeClock())
            try:
                with pytest.raises(ToolError, match=rf"MCP server x (?s:.*){words}"):
                    await server.call("t", {}, progress=print)
            finally:
                await server.close()

    asyncio.run(main())


def test_c59_a_turn_uses_a_server_and_its_result_is_from_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIMPET_HOME", str(tmp_path))
    fake = FakeServer(tmp_path / "b", ["echo"])
    call = Reply(calls=(Call("mcp_b_echo", '{"word": "barnacle"}'),))

    async def main() -> None:
        async with FakeOpenAI([call, call, Reply(text=("done",))]) as model:
            configure(tmp_path, model, b=program(fake, allow=["echo"]) | {"start": 20})
            (tmp_path / "config.toml").write_text(
                (tmp_path / "config.toml").read_text().replace("wait = 0.5", "wait = 20")
            )
            shown: list[str] = []
            async with open_assistant(Invocation(), Entrance(emit=Trace().emit, approvals=Nobody())) as services:
                await Talk(services, "main", lambda row: shown.append(row.text)).say("say it")
            assert shown == ["done"]
            offered = [request.body for request in model.requests if request.body]
            assert offered[0]["tools"] == offered[-1]["tools"]
            results = [one for one in offered[-1]["messages"] if one["role"] == "tool"]
            assert '{"word": "barnacle"}' in results[0]["content"]
            assert "[From the MCP server b." in results[0]["content"]
            assert "Not approved" in results[1]["content"]

    asyncio.run(main())


def test_a_prompt_of_a_server_is_said_once_as_a_stranger_s_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIMPET_HOME", str(tmp_path))
    fake = FakeServer(tmp_path / "b", ["echo"], prompts=[{"name": "greet", "arguments": [{"name": "who"}]}])

    async def main() -> None:
        async with FakeOpenAI([Reply(text=("hello",))]) as model:
            configure(tmp_path, model, b=program(fake) | {"start": 20})
            text = (tmp_path / "config.toml").read_text().replace("wait = 0.5", "wait = 20")
            (tmp_path / "config.toml").write_text(text)
            shown: list[str] = []
            async with open_assistant(Invocation(), Entrance(emit=Trace().emit, approvals=Nobody())) as services:
                talk = Talk(services, "main", lambda row: shown.append(row.text))
                await talk.say("/mcp")
                await talk.say("/mcp b.nothing")
                await talk.say("/mcp b.greet the cat")
                assert talk.conversation.log().tainted
            assert shown[0] == "/mcp b.greet [who=…]"
            assert "has a prompt b.nothing" in shown[1]
            assert shown[2:] == ["hello"]
            (body,) = [request.body for request in model.requests if request.body]
            assert '[The prompt b.greet:]\ngreet {"who": "the cat"}' in str(body["messages"][-1]).replace("\\n", "\n")

    asyncio.run(main())


def test_f13_tools_that_come_after_the_prompt_are_found_and_called_and_the_prompt_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIMPET_HOME", str(tmp_path))
    fake = FakeServer(tmp_path / "b", ["change"])
    script = [
        Reply(calls=(Call("mcp_b_change", "{}"),)),
        Reply(text=("first",)),
        Reply(calls=(Call("tool_search", '{"query": "later"}'),)),
        Reply(calls=(Call("call_tool", '{"name": "mcp_b_later", "arguments": {"n": 1}}'),)),
        Reply(calls=(Call("call_tool", '{"name": "mcp_b_gone", "arguments": {}}'),)),
        Reply(text=("second",)),
    ]

    async def main() -> None:
        async with FakeOpenAI(script) as model:
            configure(tmp_path, model, b=program(fake, allow=["*"], trust="tool") | {"start": 20})
            text = (tmp_path / "config.toml").read_text().replace("wait = 0.5", "wait = 20")
            (tmp_path / "config.toml").write_text(text)
            async with open_assistant(Invocation(), Entrance(emit=Trace().emit, approvals=Nobody())) as services:
                talk = Talk(services, "main", lambda row: None)
                await talk.say("change it")
                async with asyncio.timeout(20):
                    while not any(tool.spec.name == "mcp_b_later" for tool in services.tools):
                        await asyncio.sleep(0.02)
                await talk.say("go on")
                shown = await commands_look.context(talk.conversation)
            assert "deferred: 5 tools" in shown
            assert "came after this prompt was made" in shown
            offered = [request.body for request in model.requests if request.body]
            assert offered[0]["tools"] == offered[-1]["tools"]
            results = [one["content"] for one in offered[-1]["messages"] if one["role"] == "tool"]
            assert results[1].startswith("mcp_b_later: ")
            assert results[2:] == ['{"n": 1}', results[3]]
            assert "There is no tool 'mcp_b_gone'" in results[3]

    asyncio.run(main())
