"""Properties of what is read out of an update."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from limpet.channels.telegram.api import Api
from limpet.channels.telegram.reading import Reader
from limpet.channels.telegram.wire import Chat, Entity, Message, Update, User
from limpet.testing.fakes.telegram.html import found

READER = Reader(User(7, is_bot=True, username="helperbot"), "main", str, Api("t", base_url="http://localhost"), {})
WORDS = st.text(st.characters(blacklist_categories=("Cs",)), max_size=40)


def read(text: str) -> tuple[str, bool]:
    entities = tuple(Entity(one.type, one.offset, one.length) for one in found(text))
    message = Message(message_id=1, chat=Chat(-1, "group"), sender=User(2), text=text, entities=entities)
    arrival = READER.arrival(Update(1, message=message))
    assert arrival is not None
    return arrival.text, arrival.mentioned


@given(WORDS)
def test_text_that_does_not_name_the_bot_stays_as_it_is(text: str) -> None:
    assert read(f"x {text}".replace("@", "")) == (f"x {text}".replace("@", ""), False)


@given(WORDS)
def test_the_name_within_a_text_means_the_bot_and_stays(text: str) -> None:
    whole = f"x {text} @helperbot".replace("/", "")
    assert read(whole) == (whole, True)


@given(st.sampled_from(["helperbot", "HELPERBOT", "helperbot2", "helperbo", "xhelperbot"]), WORDS)
def test_only_the_exact_name_means_the_bot(name: str, text: str) -> None:
    assert read(f"@{name} {text.replace('@', '').replace('/', '')}")[1] is (name.lower() == "helperbot")


def test_a_name_before_a_command_leaves_the_command() -> None:
    assert read("@helperbot /stop") == ("/stop", True)
    assert read("@helperbot, hi") == ("hi", True)
    assert read("@helperbot") == ("@helperbot", True)
