"""Whatever a plug-in's tool does, its call ends in one result that names the plug-in."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from limpet.errors import ArgumentsError, ToolError
from limpet.plugins.guarded import guarded
from limpet.testing.context import call, tool_context
from limpet.toolkit.schema import FunctionTool, tool
from limpet.types.ports import ToolContext
from limpet.types.tool import ToolResult, text_result


@tool(effect="unsafe", sends=True)
async def act(context: ToolContext, how: str) -> ToolResult:
    """Fail in some way."""
    match how:
        case "raise":
            raise RuntimeError("no luck")
        case "exit":
            raise SystemExit(3)
        case "cancel":
            raise asyncio.CancelledError
        case "hang":
            await asyncio.sleep(60)
        case "say":
            raise ToolError("said so itself")
        case "timeout":
            raise TimeoutError("of its own")
        case "text":
            return "plain"  # type: ignore[return-value]
        case "nothing":
            return None  # type: ignore[return-value]
        case _:
            pass
    return text_result("fine")


def wrapped(seconds: float = 20.0) -> FunctionTool:
    return guarded(act, "acme", seconds=seconds)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("raise", "The plug-in acme failed: RuntimeError: no luck"),
        ("exit", "The plug-in acme failed: SystemExit: 3"),
        ("cancel", "The plug-in acme failed: it gave up"),
        ("timeout", "The plug-in acme failed: TimeoutError: of its own"),
        ("nothing", "it gave back NoneType"),
        ("say", "^said so itself$"),
    ],
)
def test_a_failure_names_the_plugin(tmp_path: Path, how: str, message: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR), pytest.raises(ToolError, match=message):
        call(wrapped(), tool_context(tmp_path), how=how)
    assert (how in ("raise", "exit", "timeout")) == any(record.exc_info for record in caplog.records)


def test_a_call_that_hangs_ends_at_its_deadline(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"acme did not answer within 0\.05 s"):
        call(wrapped(0.05), tool_context(tmp_path), how="hang")


def test_a_stop_is_no_failure(tmp_path: Path) -> None:
    async def main() -> None:
        bound = wrapped().bind('{"how": "hang"}', workspace=str(tmp_path))
        task = asyncio.create_task(bound.run(tool_context(tmp_path)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_plain_text_is_a_result(tmp_path: Path) -> None:
    assert call(wrapped(), tool_context(tmp_path), how="text").text == "plain"


def test_the_tool_is_otherwise_the_same(tmp_path: Path) -> None:
    found = wrapped()
    assert found.spec == act.spec
    assert found.effect == "unsafe"
    assert found.bind('{"how": "x"}', workspace="/").sends
    with pytest.raises(ArgumentsError, match="how: required"):
        found.bind("{}", workspace="/")
