"""Which tools a prompt names, by the room there is."""

from __future__ import annotations

import json

from msgspec import Raw, structs

from limpet.prompt.deferral import Choice, about_left_out, chosen
from limpet.testing.scripted import SCRIPTED
from limpet.types.tool import ToolSpec


def specs(prefix: str, count: int, *, size: int = 10) -> list[ToolSpec]:
    schema = Raw(json.dumps({"type": "object", "properties": {}}).encode())
    return [ToolSpec(f"{prefix}{number}", "word " * size, schema) for number in range(count)]


WAYS = [ToolSpec("call_tool", "Call.", Raw(b"{}")), ToolSpec("tool_search", "Find.", Raw(b"{}"))]


def told(choice: Choice, window: int) -> list[str]:
    return [spec.name for spec in chosen(choice, structs.replace(SCRIPTED, window=window))]


def test_with_room_for_all_everything_stands_in_order_and_no_search() -> None:
    choice = Choice(specs("a", 2), served=specs("mcp_", 1), ways=WAYS)
    assert told(choice, 128_000) == ["a0", "a1", "mcp_0"]


def test_rare_tools_are_left_out_where_the_search_is_shorter_than_they() -> None:
    choice = Choice(specs("a", 2, size=100), rare={"a1"}, served=specs("mcp_", 1), ways=WAYS)
    assert told(choice, 128_000) == ["a0", "call_tool", "tool_search", "mcp_0"]
    assert told(structs.replace(choice, ways=specs("w", 2, size=100)), 128_000) == ["a0", "a1", "mcp_0"]


def test_where_servers_may_tell_of_more_later_the_search_is_always_there() -> None:
    choice = Choice(specs("a", 1), served=specs("mcp_", 1), ways=WAYS, open=True)
    assert told(choice, 128_000) == ["a0", "call_tool", "tool_search", "mcp_0"]


def test_past_a_tenth_of_the_window_rare_tools_and_those_of_servers_go() -> None:
    choice = Choice(specs("a", 2), rare={"a1"}, served=specs("mcp_", 50, size=50), ways=WAYS)
    assert told(choice, 20_000) == ["a0", "call_tool", "tool_search"]
    assert len(told(choice, 1_000_000)) == 53


def test_nothing_goes_where_that_would_save_nothing() -> None:
    choice = Choice(specs("a", 40, size=100), rare={"a1"}, ways=specs("w", 2, size=500))
    assert len(told(choice, 20_000)) == 40


def test_a_small_window_has_none_of_servers_but_the_way_to_them() -> None:
    choice = Choice(specs("a", 2), rare={"a1"}, served=specs("mcp_", 1), ways=WAYS, open=True)
    assert told(choice, 8_000) == ["a0", "a1", "call_tool", "tool_search"]


def test_what_is_left_out_is_told_with_the_reason() -> None:
    some, all_of_them = specs("a", 1), [*specs("a", 1), *specs("mcp_", 50, size=50)]
    profile = structs.replace(SCRIPTED, window=20_000)
    assert about_left_out(some, some, profile) == ""
    assert "50 tools" in about_left_out(some, all_of_them, profile)
    assert "10% of the window (2,000 tokens)" in about_left_out(some, all_of_them, profile)
    wide = structs.replace(SCRIPTED, window=1_000_000)
    assert about_left_out(some, all_of_them, wide).endswith("came after this prompt was made")
    assert about_left_out(some, all_of_them, structs.replace(SCRIPTED, window=8_000)).endswith("the window is small")
