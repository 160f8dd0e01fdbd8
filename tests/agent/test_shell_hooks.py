"""Hooks that are commands: what they are told, and what counts as an answer. They run in the real sandbox."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import msgspec
import pytest

from limpet.agent.hooks import Dispatch
from limpet.agent.shell_hooks import Ground, ShellHook, shell_hooks, told_of
from limpet.config.hooks import HookSettings
from limpet.config.secrets import SecretRedactor
from limpet.sandbox.probe import examine
from limpet.sandbox.run import Sandbox
from limpet.testing.trace import Trace
from limpet.types.hook import HookEvent, ToolFinished, ToolWanted, TurnFinished

REPORT = examine()
needs_sandbox = pytest.mark.skipif(REPORT.kind == "none", reason=f"no sandbox: {REPORT.reason}")
KEY = "sk-0123456789abcdef"
REDACTOR = SecretRedactor({"lab": KEY})
WANTED = ToolWanted("s", "t", "a.0", "exec", '{"command": "rm -r /"}')
ENDED = TurnFinished("s", "t", "done", "all well")


def hook(command: str, **more: object) -> HookSettings:
    return msgspec.convert({"name": "guard", "points": ["before_tool"], "command": command, **more}, HookSettings)


def asked(
    folder: Path, settings: HookSettings, event: HookEvent = WANTED, *, enabled: bool = True, trace: Trace | None = None
) -> str:
    """What the dispatch makes of a hook's answer."""

    async def main() -> str:
        async with Sandbox(enabled=enabled) as sandbox:
            hooks = shell_hooks([settings], Ground(sandbox, str(folder), REDACTOR))
            dispatch = Dispatch(hooks, seconds=5, emit=(trace or Trace()).emit)
            if isinstance(event, ToolWanted):
                return await dispatch.refusal(event)
            await dispatch.tell(event)
            await dispatch.tell(event)
            await dispatch.close()
            return ""

    return asyncio.run(main())


@needs_sandbox
@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("true", ""),
        ("""echo '{"decision": "allow"}'""", ""),
        ("""echo '{"decision": "refuse", "reason": "not at night"}'""", "guard says: not at night"),
        ("""echo '{"decision": "refuse"}'""", "guard says: no"),
        ("echo 'never that'; exit 2", "guard says: never that"),
        ("exit 2", "guard says: no"),
    ],
)
def test_exit_code_and_output_say_whether_a_call_may_run(tmp_path: Path, command: str, said: str) -> None:
    assert asked(tmp_path, hook(command)) == said


@needs_sandbox
@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("exit 1", "exit code 1"),
        ("kill -9 $$", "exit code"),
        ("nosuchprogram", "exit code 127"),
        ("echo sure, go on", "neither allow nor refuse"),
        ("""echo '{"decision": "perhaps"}'""", "neither allow nor refuse"),
        ("echo '{}'", "neither allow nor refuse"),
        ("sleep 30", "within 0.2 s"),
    ],
)
def test_whatever_is_no_answer_refuses_the_call(tmp_path: Path, command: str, why: str) -> None:
    said = asked(tmp_path, hook(command, timeout=0.2 if "sleep" in command else 5.0))
    assert said.startswith("guard could not be asked, which counts as no")
    assert why in said or "ended after" in said


def test_without_a_sandbox_no_call_runs(tmp_path: Path) -> None:
    assert "there is no sandbox here" in asked(tmp_path, hook("true"), enabled=False)


@needs_sandbox
def test_what_only_watches_fails_open_and_is_told_once(tmp_path: Path) -> None:
    trace = Trace()
    settings = hook("echo oh; exit 7", points=["turn_ended"])
    assert asked(tmp_path, settings, ENDED, trace=trace) == ""
    assert trace.text.count("The hook guard failed at turn_ended") == 1


@needs_sandbox
def test_a_hook_reads_the_event_and_no_secret(tmp_path: Path) -> None:
    settings = hook("cat > seen.json", points=["after_tool"])
    asked(tmp_path, settings, ToolFinished("s", "t", "a.0", "exec", f"the key is {KEY}", is_error=False))
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert (seen["point"], seen["name"]) == ("after_tool", "exec")
    assert seen["text"] == "the key is [secret:lab]"


def test_arguments_are_json_in_json_also_after_secrets_were_taken_out() -> None:
    event = ToolWanted("s", "t", "a.0", "exec", json.dumps({"command": f'curl -H "key: {KEY}"'}))
    told = json.loads(told_of(event, REDACTOR.redact))
    assert told["arguments"] == {"command": 'curl -H "key: [secret:lab]"'}
    assert json.loads(told_of(ToolWanted("s", "t", "a", "x", "{cut"), REDACTOR.redact))["arguments"] == "{cut"


@needs_sandbox
def test_a_hook_is_only_asked_about_its_tools(tmp_path: Path) -> None:
    assert asked(tmp_path, hook("exit 2", tool="mcp_*")) == ""
    assert asked(tmp_path, hook("exit 2", tool="ex*")) == "guard says: no"


@needs_sandbox
def test_a_hook_sees_only_what_it_may_read(tmp_path: Path) -> None:
    workspace, other = tmp_path / "workspace", tmp_path / "other"
    for folder in (workspace, other):
        folder.mkdir()
    (other / "rules.sh").write_text("echo from outside; exit 2\n")
    command = f"sh {other}/rules.sh"
    assert "from outside" not in asked(workspace, hook(command))
    assert asked(workspace, hook(command, reads=[str(other)])) == "guard says: from outside"


@needs_sandbox
def test_a_hook_that_reads_nothing_and_writes_much_is_no_trouble(tmp_path: Path) -> None:
    event = ToolWanted("s", "t", "a.0", "exec", json.dumps({"command": "x" * 300_000}))
    assert asked(tmp_path, hook("yes | head -c 400000; exit 2"), event).startswith("guard says: y\ny")


@needs_sandbox
def test_a_hook_that_is_cancelled_while_it_starts_leaves_nothing_behind(tmp_path: Path) -> None:
    async def main() -> None:
        async with Sandbox() as sandbox:
            (one,) = shell_hooks([hook("sleep 30")], Ground(sandbox, str(tmp_path), REDACTOR))
            for turns in range(1, 12):
                task = asyncio.create_task(one.run(WANTED))
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_a_hook_implements_the_port() -> None:
    settings = hook("true", timeout=9.0)
    made = ShellHook(settings, Ground(Sandbox(), "/", REDACTOR))
    assert (made.name, made.points, made.timeout) == ("guard", frozenset({"before_tool"}), 9.0)
