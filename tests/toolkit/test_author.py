"""Tools of authors: what they may look like, and that the model is told the same of each."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import pytest

from limpet import ToolContext, ToolError, ToolResult, text_result, tool
from limpet.testing.context import tool_context
from limpet.toolkit.schema import FunctionTool


@tool
def plain(place: str, days: int = 1) -> str:
    """The tide at a place.

    Not told.
    """
    return f"{place} {days}"


@tool(effect="pure")
async def awaited(place: Annotated[str, "a harbour"]) -> dict[str, object]:
    """The tide at a place."""
    return {"place": place, "high": [1, 2]}


@tool(effect="pure")
async def whole(context: ToolContext, place: str) -> ToolResult:
    """The tide at a place."""
    return text_result(f"{context.session} {place}")


@tool
def silent(place: str) -> None:
    """Do it."""


@tool
def failing(place: str) -> str:
    """Fail."""
    raise ToolError(f"no harbour {place}")


def said(one: FunctionTool, arguments: str, folder: Path) -> str:
    bound = one.bind(arguments, workspace=str(folder))
    return asyncio.run(bound.run(tool_context(str(folder)))).text


def test_a_function_becomes_a_tool(tmp_path: Path) -> None:
    assert said(plain, '{"place": "Roscoff", "days": 2}', tmp_path) == "Roscoff 2"
    assert plain.effect == "unsafe"
    assert plain.spec.description == "The tide at a place."
    assert b'"required":["place"]' in bytes(plain.spec.parameters)
    assert b"context" not in bytes(plain.spec.parameters)


def test_what_json_can_say_is_a_result(tmp_path: Path) -> None:
    assert said(awaited, '{"place": "Roscoff"}', tmp_path) == '{"place":"Roscoff","high":[1,2]}'
    assert b"a harbour" in bytes(awaited.spec.parameters)
    assert said(silent, '{"place": "x"}', tmp_path) == "done"


def test_the_context_comes_where_it_is_asked_for(tmp_path: Path) -> None:
    assert said(whole, '{"place": "Roscoff"}', tmp_path).endswith(" Roscoff")


def test_errors_are_those_of_the_tool(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="no harbour x"):
        said(failing, '{"place": "x"}', tmp_path)


def test_a_parameter_without_a_type_is_refused() -> None:
    def untyped(place) -> str:  # pyright: ignore[reportUnknownParameterType, reportMissingParameterType]
        return ""

    with pytest.raises(TypeError, match="'place' needs a type, such as place: str"):
        _ = tool(untyped).spec  # pyright: ignore[reportUnknownArgumentType]
