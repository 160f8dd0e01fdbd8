"""Whatever a conversation did before, its request is the one that a fresh process would send."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from limpet.llm.prefix import PrefixCache
from limpet.types.content import Text
from limpet.types.message import AssistantMessage, Message, Producer, UserMessage

ME = Producer(provider="fake", wire="openai_chat", model="fake")
TEXTS = st.text("ab", max_size=9)
MESSAGES = st.one_of(
    TEXTS.map(lambda text: UserMessage(content=(Text(text),))),
    TEXTS.map(lambda text: AssistantMessage(content=(Text(text),), producer=ME)),
)


def encoded(cache: PrefixCache, messages: Sequence[Message], session: str = "s") -> bytes:
    def encode(group: Sequence[Message], last: bool) -> bytes:
        """Empty when there is no text, as some groups are on the wire."""
        text = "".join(block.text for message in group for block in message.content if isinstance(block, Text))
        return f"{text}{'!' * last}".encode() if text else b""

    return b"".join(cache.encode(session, tuple(messages), group=lambda message: type(message).__name__, encode=encode))


@given(st.lists(st.tuples(st.integers(0, 12), st.lists(MESSAGES, max_size=6)), max_size=8), st.integers(1, 40))
def test_a_request_does_not_depend_on_the_ones_before(steps: list[tuple[int, list[Message]]], seal: int) -> None:
    cache, messages = PrefixCache(seal=seal), list[Message]()
    for back, more in steps:
        messages = messages[: max(0, len(messages) - back)] + more
        assert encoded(cache, messages) == encoded(PrefixCache(), messages)


def test_groups_without_bytes_leave_no_comma() -> None:
    said = [UserMessage(content=(Text(text),)) for text in ("", "a", "")]
    answer = AssistantMessage(content=(Text("b"),), producer=ME)
    empty = AssistantMessage(content=(Text(""),), producer=ME)
    assert encoded(PrefixCache(), [said[0], answer, said[1], empty, said[2]]) == b"b,a"


def test_the_least_recently_used_session_goes_first() -> None:
    cache = PrefixCache(cap=30)
    talk = [UserMessage(content=(Text("a" * 20),)), AssistantMessage(content=(Text("b"),), producer=ME)]
    for session in ("one", "two", "one"):
        assert encoded(cache, talk, session) == b"a" * 20 + b",b!"
