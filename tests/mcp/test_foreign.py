"""Configurations of other programs, as they are."""

from __future__ import annotations

import pytest

from limpet.errors import InputError
from limpet.mcp.foreign import read_servers

ONE = '{"command": "npx", "args": ["-y", "x"], "env": {"KEY": "${SECRET}"}}'


@pytest.mark.parametrize(
    "text",
    [
        f'{{"mcpServers": {{"one": {ONE}}}}}',
        f'{{"mcp": {{"servers": {{"one": {ONE}}}}}}}',
        f'{{"tools": {{"mcpServers": {{"one": {ONE}}}}}}}',
        f'{{ // mine\n"mcpServers": {{"one": {ONE},}} /* end */ }}',
    ],
)
def test_each_form_is_read(text: str) -> None:
    found, faults = read_servers(text)
    assert faults == []
    assert (found["one"].command, found["one"].args, dict(found["one"].env)) == (
        "npx",
        ("-y", "x"),
        {"KEY": "env:SECRET"},
    )


def test_an_address_keeps_its_slashes_and_switches_are_understood() -> None:
    one = '{"url": "https://x.example/mcp", "disabled": true, "toolTimeout": 7, "enabledTools": ["t"]}'
    found, _ = read_servers(f'{{"mcpServers": {{"a": {one}}}}}')
    one = found["a"]
    assert (one.url, one.enabled, one.timeout, one.tools) == ("https://x.example/mcp", False, 7.0, ("t",))


def test_what_cannot_be_taken_over_is_named_and_the_rest_is() -> None:
    found, faults = read_servers(
        '{"mcpServers": {"a": {"command": 3}, "b": {}, "c": {"url": "http://c", "type": "sse"}}}'
    )
    assert found == {}
    assert [fault[:2] for fault in faults] == ["a:", "b:", "c:"]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"mcpServers": []}'])
def test_a_file_without_servers_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        read_servers(text)
