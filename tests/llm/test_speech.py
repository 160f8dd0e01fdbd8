"""Text to speech: one recording, however long the text."""

from __future__ import annotations

import io
import wave

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from limpet.config.schema import SpeechPurpose
from limpet.errors import CredentialError, InputError, UpstreamError
from limpet.llm.media.speech import cut
from limpet.testing.fakes import FakeMedia, Reply
from limpet.types.ports import Media
from tests.llm.media import SETTINGS, Ledger, in_studio


def spoken(server: FakeMedia, text: str, *, ledger: Ledger | None = None, **settings: str) -> Media:
    purpose = SpeechPurpose(**{"model": "openai/tts-1", **settings})  # pyright: ignore
    whole = structs.replace(SETTINGS, speech=purpose)
    return in_studio(server, lambda studio: studio.speak(text), settings=whole, ledger=ledger)


def test_a_text_is_spoken_with_the_usual_voice():
    server, ledger = FakeMedia(), Ledger()
    assert spoken(server, "Hi there", ledger=ledger) == Media(b"ID3Hi there", "audio/mpeg")
    assert server.requests[0].fields["voice"] == "alloy"
    assert ledger.reserved == [120]
    assert ledger.settled == [("done", 120)]


def test_a_long_text_goes_in_pieces_that_end_with_sentences():
    server = FakeMedia()
    made = spoken(server, "One more sentence. " * 500)
    assert len(server.requests) == 3
    assert all(str(seen.fields["input"]).endswith("sentence. ") for seen in server.requests)
    assert made.data.replace(b"ID3", b"").decode() == "One more sentence. " * 500


def test_pieces_in_wav_become_one_file():
    with wave.open(io.BytesIO(spoken(FakeMedia(), "word " * 1000, format="wav").data)) as sound:
        assert sound.getnframes() == 5000


@pytest.mark.parametrize(
    ("text", "settings", "words"),
    [
        (" ", {}, "nothing to speak"),
        ("x" * 100_001, {}, "at most 100,000"),
        ("x " * 3000, {"format": "flac"}, "cannot become one flac"),
        ("x", {"model": "groq/canopylabs/orpheus-v1-english"}, "does not speak mp3"),
    ],
)
def test_what_cannot_be_spoken_is_said_before_anything_is_sent(text: str, settings: dict[str, str], words: str):
    server = FakeMedia()
    with pytest.raises(InputError, match=words):
        spoken(server, text, **settings)
    assert not server.requests


def test_an_unknown_voice_is_the_services_word():
    with pytest.raises(Exception, match="voice: Input should be one of"):
        spoken(FakeMedia(), "x", voice="nobody")


@pytest.mark.parametrize(
    "reply", [Reply(raw=("<html>",)), Reply(raw=('{"detail": "x"}',)), Reply(raw=(" ",)), Reply(cut_after=1)]
)
def test_an_answer_that_is_no_sound_is_an_error(reply: Reply):
    with pytest.raises(UpstreamError):
        spoken(FakeMedia([reply, reply]), "x")


def test_a_refused_key_is_told():
    with pytest.raises(CredentialError):
        spoken(FakeMedia([Reply(status=401, body={})]), "x")


@given(st.text(max_size=300), st.integers(8, 40))
def test_pieces_are_short_and_lose_nothing(text: str, longest: int):
    pieces = cut(text, longest)
    assert "".join(pieces) == text
    assert all(len(piece) <= longest for piece in pieces)
