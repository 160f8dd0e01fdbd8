"""What is one message, and where an answer that grows is cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from limpet.channels.coalesce import LEAST, WAIT, Gathering, blocks
from limpet.testing.clock import FakeClock
from limpet.types.channel import Arrival, File
from limpet.types.envelope import Address

HOME = Address("telegram", "main", "7")


def said(text: str, *, event: str = "1", sender: str = "pat", album: str = "", name: str = "") -> Arrival:
    async def fetch(limit: int) -> bytes:
        return b""

    files = (File(name, "image/png", fetch),) if name else ()
    return Arrival(HOME, event, sender, text, album=album, files=files)


def test_an_ordinary_message_waits_for_nothing() -> None:
    gathering = Gathering(FakeClock(), limit=100)
    message = said("hi")
    assert gathering.put(message) == ((message,),)
    assert gathering.next_due() is None


def test_pictures_of_an_album_are_one_message() -> None:
    clock = FakeClock()
    gathering = Gathering(clock)
    assert gathering.put(said("look", album="a", name="1.png")) == ()
    clock.advance(0.5)
    assert gathering.put(said("", event="2", album="a", name="2.png")) == ()
    assert gathering.due() == ()
    clock.advance(WAIT)
    (parts,) = gathering.due()
    one = gathering.as_one(parts)
    assert (one.text, one.event, [file.name for file in one.files]) == ("look", "1", ["1.png", "2.png"])
    assert gathering.next_due() is None


def test_another_album_is_another_message() -> None:
    gathering = Gathering(FakeClock())
    gathering.put(said("a", album="a"))
    (first,) = gathering.put(said("b", album="b"))
    assert first[0].text == "a"
    assert [parts[0].text for parts in gathering.rest()] == ["b"]


def test_a_paste_that_the_platform_cut_is_one_message() -> None:
    gathering = Gathering(FakeClock(), limit=100)
    assert gathering.put(said("x" * 100)) == ()
    assert gathering.put(said("y" * 96, event="2")) == ()
    (parts,) = gathering.put(said("z", event="3"))
    assert gathering.as_one(parts).text == "x" * 100 + "y" * 96 + "\nz"


def test_what_comes_later_is_a_message_of_its_own_behind_it() -> None:
    clock = FakeClock()
    gathering = Gathering(clock, limit=100)
    gathering.put(said("x" * 100))
    clock.advance(WAIT + 0.1)
    assert [parts[0].text[0] for parts in gathering.put(said("z", event="2"))] == ["x", "z"]


def test_a_command_after_a_long_text_is_not_part_of_it() -> None:
    gathering = Gathering(FakeClock(), limit=100)
    gathering.put(said("x" * 100))
    assert [parts[0].text[0] for parts in gathering.put(said("/stop", event="2"))] == ["x", "/"]


def test_two_people_are_never_one_message() -> None:
    gathering = Gathering(FakeClock(), limit=100)
    gathering.put(said("x" * 100))
    (parts,) = gathering.put(said("y", event="2", sender="kim"))
    assert [part.sender for part in parts] == ["kim"]


def test_a_short_paragraph_waits_for_more() -> None:
    assert blocks("One.\n\nTwo.\n\n", False) == ()
    assert blocks("One.\n\nTwo.", True) == ("One.\n\nTwo.",)


def test_a_paragraph_goes_when_it_has_ended() -> None:
    long = "word " * (LEAST // 4)
    assert blocks(long, False) == ()
    assert blocks(f"{long}\n\nNext", False) == (f"{long}\n\n",)


def test_code_is_never_cut_and_what_stands_before_it_goes_first() -> None:
    code = "```\n" + "line\n\n" * 100
    assert blocks(f"See:\n\n{code}", False, limit=500) == ("See:\n\n",)
    assert blocks(f"See:\n\n{code}```\n", False, limit=500) == ("See:\n\n", f"{code}```\n")


def test_a_paragraph_longer_than_a_message_is_cut_at_a_sentence() -> None:
    first, *_ = blocks("Six words make up this sentence. " * 30, False, limit=300)
    assert first.endswith("sentence. ")
    assert len(first) <= 300


PIECES = st.sampled_from(["```\n", "\n```\n", "\n\n", "word. ", "x" * 150, "- a\n", "> b\n", "~~~\n", "\n", "`` "])


@given(st.lists(PIECES, max_size=40), st.integers(200, 500))
def test_blocks_sent_while_an_answer_grows_are_the_answer(pieces: list[str], limit: int) -> None:
    text, sent = "", ""
    for piece in pieces:
        text += piece
        new = "".join(blocks(text, False, start=len(sent), limit=limit))
        sent += new
        assert text.startswith(sent)
    sent += "".join(blocks(text, True, start=len(sent), limit=limit))
    assert sent == text
