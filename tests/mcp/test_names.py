"""Names of servers' tools: what every service takes, unique, and the same each time."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from limpet.mcp.names import server_parts, tool_name

WORDS = st.text(min_size=1, max_size=90)


def test_a_plain_name_stays_as_it_is() -> None:
    assert tool_name(server_parts(["time"])["time"], "time", "get_current_time") == "mcp_time_get_current_time"


@given(st.lists(st.tuples(WORDS, WORDS), unique=True, max_size=8))
def test_every_pair_has_a_name_of_its_own_that_services_take(pairs: list[tuple[str, str]]) -> None:
    parts = server_parts(server for server, _ in pairs)
    names = [tool_name(parts[server], server, tool) for server, tool in pairs]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names)


def test_where_a_server_ends_and_its_tool_begins_is_never_in_doubt() -> None:
    parts = server_parts(["a", "a_b"])
    assert tool_name(parts["a"], "a", "b_c") != tool_name(parts["a_b"], "a_b", "c")


def test_a_server_with_the_same_letters_does_not_change_the_name_of_a_plain_one() -> None:
    assert server_parts(["my-server"])["my-server"] == server_parts(["my-server", "my_server"])["my-server"]
