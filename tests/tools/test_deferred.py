"""Tools that the prompt does not name are found by words and called as themselves."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from limpet.errors import ArgumentsError
from limpet.testing.context import tool_context
from limpet.toolkit.schema import tool
from limpet.tools.deferred import CallTool, deferrable, make_tool_search, ranked, shown, unwrapped
from limpet.types.content import ToolCall
from limpet.types.ports import ToolContext
from limpet.types.tool import ToolResult, ToolSpec, text_result


def spec(name: str, description: str = "", *parameters: str) -> ToolSpec:
    schema = {"type": "object", "properties": {one: {"type": "string"} for one in parameters}}
    return ToolSpec(name, description, Raw(json.dumps(schema).encode()))


SPECS = [
    spec("mcp_hub_create_issue", "Open a new issue in a repository.", "title", "body"),
    spec("mcp_hub_list_issues", "List the issues of a repository.", "state"),
    spec("mcp_maps_findRoute", "The way between two places.", "from", "to", "vehicle"),
    spec("mcp_notes_add", "在笔记本里添加一条记录", "text"),
]


@tool(effect="pure", rare=True)
async def seldom(context: ToolContext, word: str) -> ToolResult:
    """Say a word."""
    return text_result(word)


@tool(effect="pure")
async def often(context: ToolContext) -> ToolResult:
    """Say nothing."""
    return text_result("")


def wrapped(value: object) -> ToolCall:
    return unwrapped(ToolCall("1", "call_tool", value if isinstance(value, str) else json.dumps(value)))


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("create issue", "mcp_hub_create_issue"),
        ("open issues state", "mcp_hub_list_issues"),
        ("route", "mcp_maps_findRoute"),
        ("vehicle", "mcp_maps_findRoute"),
        ("mcp_hub_list_issues", "mcp_hub_list_issues"),
        ("笔记", "mcp_notes_add"),
    ],
)
def test_the_best_is_found_by_name_parameters_and_description(query: str, best: str) -> None:
    assert ranked(query, SPECS)[0].name == best


def test_a_search_shows_whole_schemas_of_the_best_and_the_names_of_others() -> None:
    text = shown(SPECS, SPECS, room=300)
    assert bytes(SPECS[0].parameters).decode() in text
    assert text.splitlines()[-1].startswith("Also: ")
    assert "mcp_notes_add" in text


def test_a_search_without_hits_and_one_without_words_name_them_all(tmp_path: Path) -> None:
    search = make_tool_search(lambda: [seldom, often, CallTool()])

    async def say(query: str) -> str:
        call = search.bind(json.dumps({"query": query}), workspace=str(tmp_path))
        return (await call.run(tool_context(tmp_path))).text

    assert asyncio.run(say("")) == "There are: seldom."
    assert asyncio.run(say("zebra")) == "No tool matches. There are: seldom."
    assert asyncio.run(say("word")).startswith("seldom: Say a word.\nparameters: {")


def test_core_tools_are_never_deferred() -> None:
    assert [deferrable(one) for one in (seldom, often, CallTool())] == [True, False, False]


@pytest.mark.parametrize("arguments", [{"word": "a"}, '{"word": "a"}'])
def test_a_call_is_the_inner_one_however_its_arguments_are_sent(arguments: object) -> None:
    found = wrapped({"name": "seldom", "arguments": arguments})
    assert (found.id, found.name, json.loads(found.arguments), found.fault) == ("1", "seldom", {"word": "a"}, "")


@pytest.mark.parametrize("value", ["[]", "{", {}, {"name": 3}, {"name": "call_tool"}, {"name": "a", "arguments": [1]}])
def test_a_call_that_names_no_other_has_a_fault(value: object) -> None:
    found = wrapped(value)
    assert found.name == "call_tool"
    assert found.fault


def test_by_itself_it_does_nothing(tmp_path: Path) -> None:
    with pytest.raises(ArgumentsError, match="does nothing by itself"):
        CallTool().bind('{"name": "a"}', workspace=str(tmp_path))


@given(st.text(), st.dictionaries(st.text(), st.integers()))
def test_what_is_wrapped_comes_out_as_it_was(name: str, arguments: dict[str, int]) -> None:
    found = wrapped({"name": name, "arguments": arguments})
    if name and name != "call_tool":
        assert (found.name, json.loads(found.arguments), found.fault) == (name, arguments, "")
