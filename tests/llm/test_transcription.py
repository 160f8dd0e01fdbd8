"""Speech to text at a strict service and by a program."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import pytest
from msgspec import structs

from limpet.config.schema import PurposeSettings, TranscriptionPurpose
from limpet.errors import CredentialError, InputError, LimpetError, RateLimitError, StalledError, UpstreamError
from limpet.llm.http import Deadlines
from limpet.llm.media.studio import Studio
from limpet.testing.fakes import FakeMedia, Reply
from tests.llm.media import SETTINGS, Ledger, in_studio


def hear(server: FakeMedia, *, data: bytes = b"OggS...", name: str = "memo.ogg", model: str = "whisper-1", **more):
    purpose = TranscriptionPurpose(model=f"openai/{model}", language=more.pop("language", ""))
    settings = structs.replace(SETTINGS, transcription=purpose)
    return in_studio(server, lambda studio: studio.transcribe(data, name=name), settings=settings, **more)


def test_a_recording_becomes_text_and_its_length_money():
    server, ledger = FakeMedia([Reply(text=(" Hello. ",))]), Ledger()
    assert hear(server, language="en", ledger=ledger) == "Hello."
    seen = server.requests[0]
    assert seen.fields == {"model": "whisper-1", "response_format": "json", "language": "en"}
    assert (seen.file, seen.mime, seen.size) == ("audio.ogg", "audio/ogg", 7)
    assert ledger.settled == [("done", 3000)]


def test_tokens_are_counted_where_the_service_names_them():
    ledger = Ledger()
    hear(FakeMedia(), model="gpt-4o-transcribe", ledger=ledger)
    assert ledger.settled == [("done", 3500)]


def test_the_language_goes_in_the_field_that_the_model_has():
    server = FakeMedia()
    hear(server, model="gpt-transcribe", language="en")
    assert server.requests[0].fields["languages[]"] == "en"


def test_a_recording_reserves_what_its_size_may_cost():
    ledger = Ledger()
    hear(FakeMedia(), data=bytes(2_400_000), ledger=ledger)
    assert ledger.reserved == [126_000]


def test_a_large_recording_goes_through_whole():
    server = FakeMedia()
    assert hear(server, data=bytes(3_000_000), name='Ä "x".OPUS') == "Hello there."
    assert (server.requests[0].size, server.requests[0].file) == (3_000_000, "audio.ogg")


def test_silence_is_an_empty_text():
    assert hear(FakeMedia([Reply(text=("  ",))])) == ""


def test_a_failure_that_passes_is_asked_again_and_each_attempt_counted():
    ledger = Ledger()
    assert hear(FakeMedia([Reply(status=500, body={}), Reply(text=("yes",))]), ledger=ledger) == "yes"
    assert [state for state, _ in ledger.settled] == ["failed", "done"]


@pytest.mark.parametrize(
    ("reply", "error", "words"),
    [
        (Reply(status=401, body={"error": {"message": "bad key"}}), CredentialError, "bad key"),
        (Reply(status=429, body={}, headers={"retry-after": "60"}), RateLimitError, "HTTP 429"),
        (Reply(cut_after=1), UpstreamError, "cut off"),
        (Reply(raw=("<html>login</html>",)), UpstreamError, "HTML"),
        (Reply(raw=("no json",)), UpstreamError, "something else"),
        (Reply(body={"error": {"message": "overloaded", "code": 503}}), UpstreamError, "overloaded"),
        (Reply(delay=9), StalledError, "sent nothing"),
    ],
    ids=["401", "429", "cut", "html", "text", "error in a 200", "stall"],
)
def test_failures_are_of_the_same_tree_as_those_of_models(reply: Reply, error: type[LimpetError], words: str):
    with pytest.raises(error, match=words):
        hear(FakeMedia([reply, reply]), deadlines=Deadlines(connect=1, first_byte=0.2, idle=1, total=5))


def test_a_second_key_stands_in():
    assert hear(FakeMedia(), keys=("sk-old", FakeMedia.key)) == "Hello there."


@pytest.mark.parametrize(
    ("data", "name", "words"),
    [(b"", "a.ogg", "is empty"), (b"x", "a.txt", "no recording"), (bytes((25 << 20) + 1), "a.wav", "takes 25 MB")],
)
def test_what_the_service_would_refuse_is_not_sent(data: bytes, name: str, words: str):
    server = FakeMedia()
    with pytest.raises(InputError, match=words):
        hear(server, data=data, name=name, deadlines=Deadlines(total=5))
    assert not server.requests


def test_nothing_configured_says_what_to_set():
    with pytest.raises(InputError, match="No model is configured") as caught:
        in_studio(FakeMedia(), lambda studio: studio.transcribe(b"x", name="a.ogg"), settings=PurposeSettings())
    assert "models.purposes.transcription.model" in caught.value.hint


def test_a_service_of_another_kind_is_named():
    settings = structs.replace(SETTINGS, transcription=TranscriptionPurpose(model="anthropic/claude-x"))
    with pytest.raises(InputError, match="OpenAI-compatible"):
        in_studio(FakeMedia(), lambda studio: studio.transcribe(b"x", name="a.ogg"), settings=settings)


def by_command(*code: str, timeout: float = 20.0, data: bytes = b"sound") -> str:
    """What the Python program `code` makes of a recording; `sys.argv[1]` is the file, `[2]` the one to write."""
    command = (sys.executable, "-c", *code)
    settings = PurposeSettings(transcription=TranscriptionPurpose(command=command, timeout=timeout))

    async def no_desk(reference: str):
        raise AssertionError

    return asyncio.run(Studio(settings, no_desk).transcribe(data, name="memo.wav"))


def test_a_program_is_given_the_recording_and_its_output_is_the_text():
    assert by_command("import sys; print(sys.argv[1][-9:], open(sys.argv[1]).read())", "{file}") == "audio.wav sound"


@pytest.mark.parametrize("ending", ["", ".txt"])
def test_a_program_may_write_its_text_to_a_file(ending: str):
    code = f"import sys; print('noise'); open(sys.argv[2] + '{ending}', 'w').write('text')"
    assert by_command(code, "{file}", "{output}") == "text"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import sys; sys.exit('no model file')", "code 1: no model file"),
        ("import time; time.sleep(60)", "not done after"),
        ("while True: print('x' * 100000)", "said more than"),
    ],
)
def test_a_program_that_fails_is_an_error_that_says_how(code: str, words: str):
    with pytest.raises(UpstreamError, match=words):
        by_command(code, timeout=20.0 if "sleep" not in code else 0.3)


def test_a_missing_program_is_named():
    settings = PurposeSettings(transcription=TranscriptionPurpose(command=("no-such-whisper", "{file}")))

    async def no_desk(reference: str):
        raise AssertionError

    with pytest.raises(UpstreamError, match="no-such-whisper is not installed"):
        asyncio.run(Studio(settings, no_desk).transcribe(b"x", name="a.wav"))


def test_what_a_program_started_dies_with_it(tmp_path: Path):
    mark = tmp_path / "pid"
    code = (
        "import subprocess, sys, time;"
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
        f"open({str(mark)!r}, 'w').write(str(p.pid)); time.sleep(60)"
    )
    with pytest.raises(UpstreamError):
        by_command(code, timeout=1.0)
    state = Path(f"/proc/{mark.read_text()}/stat")
    for _ in range(100):  # a kill is no wait
        if not state.exists() or ") Z" in state.read_text():
            return
        time.sleep(0.05)
    raise AssertionError("it lives on")
