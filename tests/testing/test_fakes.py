from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from limpet.testing.fakes import FakeAnthropic, FakeOpenAI, Reply, Rules, load_script
from limpet.testing.fakes.default import converse
from limpet.testing.wires import answer_of, ask, tool, user, wire_at
from limpet.types.content import Text
from limpet.types.message import ToolMessage
from limpet.types.profile import Profile

OPENAI = Profile(provider="openai", wire="openai_chat", model="m")
CLAUDE = Profile(provider="anthropic", wire="anthropic", model="m")
USER = {"role": "user", "content": "Hi"}
CALL = {"id": "a", "type": "function", "function": {"name": "t", "arguments": "{}"}}
ASKS = {"role": "assistant", "content": None, "tool_calls": [CALL]}
TOLD = {"role": "tool", "tool_call_id": "a", "content": "ok"}
USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "t", "input": {}}]}
GAVE = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}


def send(kind, body: object, *, headers: dict[str, str] | None = None, rules: Rules | None = None) -> tuple[int, dict]:
    """Status and error of a hand-made request."""
    own = {"authorization": "Bearer sk-test", "x-api-key": "sk-test", "anthropic-version": "2023-06-01"}

    async def run():
        async with kind([Reply(text=("ok",))], rules=rules) as server, aiohttp.ClientSession() as session:
            path = "/messages" if kind is FakeAnthropic else "/chat/completions"
            data = body if isinstance(body, bytes) else json.dumps(body)
            async with session.post(server.base_url + path, data=data, headers=headers or own) as response:
                text = await response.text()
                return response.status, json.loads(text) if response.status != 200 else {}

    return asyncio.run(run())


def chat(*messages: object, **fields: object) -> dict[str, object]:
    return {"model": "m", "stream": True, "messages": messages, **fields}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "parse the JSON"),
        ({"messages": [USER]}, "model"),
        (chat(), "too short"),
        (chat(USER, colour="red"), "Unsupported parameter"),
        (chat({"role": "user", "content": ""}), "empty"),
        (chat({"role": "boss", "content": "x"}), "role"),
        (chat(USER, {"role": "system", "content": "x"}), "must be the first"),
        (chat(USER, ASKS, USER), "no tool message"),
        (chat(USER, ASKS), "no tool message"),
        (chat(USER, TOLD), "no preceding"),
        (chat(USER, ASKS, TOLD, TOLD), "no preceding"),
        (chat(USER, {"role": "assistant", "content": None}), "neither content"),
        (chat(USER, {**ASKS, "tool_calls": [CALL, CALL]}), "twice"),
        (chat(USER, {**ASKS, "tool_calls": [{**CALL, "function": {"name": "t", "arguments": "{"}}]}, TOLD), "no JSON"),
        (chat(USER, {**ASKS, "tool_calls": [{**CALL, "function": {"name": "t t", "arguments": "{}"}}]}, TOLD), "match"),
        (chat(USER, tools=[]), "too short"),
        (chat(USER, tool_choice="none"), "only allowed"),
        (
            chat(USER, tools=[{"type": "function", "function": {"name": "t", "parameters": {"type": "array"}}}]),
            "object",
        ),
    ],
)
def test_the_openai_fake_is_strict(body: object, words: str):
    status, answer = send(FakeOpenAI, body)
    assert status == 400
    assert words in answer["error"]["message"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"[]", "JSON"),
        (chat(USER), "max_tokens"),
        (chat(max_tokens=9), "at least one"),
        (chat(USER, max_tokens=9, n=1), "Extra inputs"),
        (chat(USE, max_tokens=9), "first message"),
        (chat(USER, USER, max_tokens=9), "alternate"),
        (chat({"role": "user", "content": [{"type": "text", "text": " "}]}, max_tokens=9), "non-whitespace"),
        (chat(USER, USE, max_tokens=9), "without `tool_result`"),
        (chat(USER, USE, USER, max_tokens=9), "without `tool_result`"),
        (chat(GAVE, max_tokens=9), "unexpected `tool_use_id`"),
        (chat(USER, USE, GAVE, USE, GAVE, max_tokens=9), "unique"),
        (chat(USER, {"role": "assistant", "content": [{**USE["content"][0], "id": "a:b"}]}, max_tokens=9), "pattern"),
        (
            chat(
                USER,
                {"role": "assistant", "content": [{"type": "thinking", "thinking": "x", "signature": "no"}]},
                max_tokens=9,
            ),
            "signature",
        ),
        (chat(USER, max_tokens=9, tools=[{"name": "t", "input_schema": {"type": "string"}}]), "object"),
        (chat(USER, max_tokens=9, tool_choice={"type": "none"}), "tools"),
        (
            chat({"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {}}] * 5}, max_tokens=9),
            "maximum of 4",
        ),
    ],
)
def test_the_anthropic_fake_is_strict(body: object, words: str):
    status, answer = send(FakeAnthropic, body)
    assert status == 400
    assert words in answer["error"]["message"]


@pytest.mark.parametrize("kind", [FakeOpenAI, FakeAnthropic])
def test_a_wrong_key_is_refused(kind):
    assert send(kind, chat(USER), headers={"authorization": "Bearer x", "x-api-key": "x"})[0] == 401


def test_rules_of_single_services():
    assert send(FakeOpenAI, chat(USER, ASKS, TOLD), rules=Rules(deepseek=True))[0] == 400
    assert send(FakeOpenAI, chat(USER, ASKS, TOLD), rules=Rules(id_pattern="[0-9]+"))[0] == 400
    assert send(FakeOpenAI, chat(USER, temperature=1), rules=Rules(forbidden=("temperature",)))[0] == 400
    assert send(FakeOpenAI, chat(USER, USER), rules=Rules(alternate=True))[0] == 400
    assert send(FakeOpenAI, chat(USER, ASKS, TOLD))[0] == 200


@pytest.mark.parametrize(("kind", "profile"), [(FakeOpenAI, OPENAI), (FakeAnthropic, CLAUDE)])
def test_the_script_of_the_command_lists_files_when_asked(kind, profile: Profile):
    tools = [tool("list_dir")]
    asked = user("List the files in your workspace")

    async def run():
        async with kind(converse) as server, wire_at(server, profile) as model:
            hello = await answer_of(model, ask(user("Hello"), tools=tools))
            answer = await answer_of(model, ask(asked, tools=tools))
            result = ToolMessage(answer.calls[0].id, "list_dir", (Text("AGENTS.md\nnotes/"),))
            return hello, answer, await answer_of(model, ask(asked, answer, result, tools=tools))

    hello, answer, last = asyncio.run(run())
    assert "You said: Hello" in hello.text
    assert (answer.calls[0].name, answer.calls[0].arguments) == ("list_dir", '{"path": "."}')
    assert "AGENTS.md\nnotes/" in last.text


def test_a_person_starts_both_fakes_with_a_script(tmp_path: Path):
    script = tmp_path / "script.json"
    script.write_text('[{"text": ["from ", "the file"]}]')
    assert load_script(script) == [Reply(text=("from ", "the file"))]
    command = [sys.executable, "-m", "limpet.testing.fakes", "--script", str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline(), process.stdout.readline()]
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 0
    assert lines[0].startswith("OPENAI_BASE_URL=http://127.0.0.1:")
    assert lines[1].startswith("ANTHROPIC_BASE_URL=http://127.0.0.1:")


def marked(text: str, ttl: str) -> dict:
    return {"type": "text", "text": text, "cache_control": {"type": "ephemeral", "ttl": ttl}}


@pytest.mark.parametrize(
    ("system", "user", "words"),
    [
        ("1h", ["1h", "5m", "5m"], ""),
        ("5m", ["1h"], "must not come after"),
        ("1h", ["1h"] * 4, "A maximum of 4"),
        ("2h", [], "Input should be"),
    ],
)
def test_anthropic_checks_cache_marks(system: str, user: list[str], words: str):
    content = [*(marked("b", ttl) for ttl in user), {"type": "text", "text": "c"}]
    body = {"model": "m", "max_tokens": 9, "system": [marked("s", system)], "stream": True}
    status, error = send(FakeAnthropic, {**body, "messages": [{"role": "user", "content": content}]})
    assert (status == 200) == (not words)
    assert words in str(error)
