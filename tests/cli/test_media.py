"""Recordings and documents attached to a message, and `limpet media`."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
import zipfile
from pathlib import Path

import pytest

from limpet.cli.message import Attached, attach, files_in
from limpet.errors import InputError, UpstreamError
from limpet.testing.blobs import FolderBlobs
from limpet.testing.fakes import Call, FakeMedia, FakeOpenAI, Reply
from limpet.testing.fakes.media import png
from tests.cli.program import at, limpet

CONFIG = """
[providers.openai]
api_key = "sk-test"
base_url = "{url}"

[models.purposes]
transcription.model = "openai/whisper-1"
speech.model = "openai/tts-1"
image.model = "openai/gpt-image-1"
"""


class Ear:
    """A `Transcriber` that says the same of everything."""

    can_transcribe = True

    def __init__(self, said: str | Exception) -> None:
        self._said = said

    async def transcribe(self, data: bytes, *, name: str, session: str = "") -> str:
        if isinstance(self._said, Exception):
            raise self._said
        return self._said


def attached(folder: Path, name: str, data: bytes, *, said: str | Exception = "") -> Attached:
    path = folder / name
    path.write_bytes(data)
    return asyncio.run(
        attach("look", [f"@{path}"], piped="", blobs=FolderBlobs(folder / "blobs"), transcriber=Ear(said))
    )


def test_a_recording_is_attached_as_what_is_said(tmp_path: Path) -> None:
    assert attached(tmp_path, "a.OGG", b"OggS", said="Buy milk.").text == "look\n\n[audio a.OGG, transcribed] Buy milk."
    assert "nothing is said" in attached(tmp_path, "a.wav", b"RIFF").text


@pytest.mark.parametrize("error", [InputError("No model.", hint="Set one."), UpstreamError("down")])
def test_a_recording_that_cannot_be_heard_is_not_lost(
    tmp_path: Path, error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    found = attached(tmp_path, "a.mp3", b"ID3", said=error)
    assert found.text == f"look\n\n[audio a.mp3 was attached, but its content could not be had: {error}]"
    assert str(error) in capsys.readouterr().err


def test_in_a_chat_only_words_that_name_a_file_attach_it(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("x")
    assert files_in(f"ask @ada about @{file} and @{tmp_path} me@home") == [f"@{file}"]
    assert files_in(f"/model @{file}") == []


def docx(path: Path, text: str) -> None:
    """The smallest Word document there is."""
    types = "http://schemas.openxmlformats.org"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{types}/package/2006/content-types"><Default Extension="rels" ContentType='
            '"application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" '
            'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>',
        )
        file.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{types}/package/2006/relationships"><Relationship Id="r1" Type="{types}/'
            'officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>',
        )
        file.writestr(
            "word/document.xml",
            f'<w:document xmlns:w="{types}/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>{text}</w:t></w:r></w:p>'
            "</w:body></w:document>",
        )


@pytest.mark.skipif(importlib.util.find_spec("markitdown") is None, reason="the extra documents is not installed")
def test_a_document_is_attached_as_text(tmp_path: Path) -> None:
    source = tmp_path / "source.docx"
    docx(source, "The offer is 12 euros.")
    found = attached(tmp_path, "offer.docx", source.read_bytes())
    assert "The offer is 12 euros." in found.text
    assert '<file name="offer.docx"' in found.text


def test_a_document_that_cannot_be_read_is_not_lost(tmp_path: Path) -> None:
    found = attached(tmp_path, "bad.docx", b"PK\x03\x04 and nothing more\0\xff")
    assert "[bad.docx was attached, but its content could not be had: bad.docx cannot be read: " in found.text


def at_service(home: Path, *arguments: str) -> tuple[FakeMedia, int, str, str]:
    """`limpet media` with everything configured."""
    server = FakeMedia()

    async def main() -> tuple[int, str, str]:
        async with server:
            home.mkdir(exist_ok=True)
            (home / "config.toml").write_text(CONFIG.format(url=server.base_url))
            ended = await limpet(home, "media", *arguments)
            return ended.code, ended.out, ended.err

    return (server, *asyncio.run(main()))


def test_a_recording_is_printed_as_text(tmp_path: Path) -> None:
    (tmp_path / "a.ogg").write_bytes(b"OggS")
    _, code, out, _ = at_service(tmp_path / "home", "transcribe", str(tmp_path / "a.ogg"))
    assert (code, out) == (0, "Hello there.\n")


def test_a_text_is_spoken_in_the_form_its_file_names(tmp_path: Path) -> None:
    server, code, out, err = at_service(tmp_path / "home", "speak", "Hi.", "-o", str(tmp_path / "a.wav"))
    assert code == 0, err
    assert server.requests[0].fields["response_format"] == "wav"
    assert (tmp_path / "a.wav").read_bytes()[:4] == b"RIFF"
    assert "audio/wav" in out


def test_a_picture_is_written(tmp_path: Path) -> None:
    _, code, _, err = at_service(tmp_path / "home", "image", "a cat", "-o", str(tmp_path / "a.png"))
    assert code == 0, err
    assert (tmp_path / "a.png").read_bytes() == png()


def test_nothing_configured_says_what_to_set(tmp_path: Path) -> None:
    (tmp_path / "a.ogg").write_bytes(b"OggS")
    ended = asyncio.run(limpet(tmp_path / "home", "media", "transcribe", str(tmp_path / "a.ogg")))
    assert ended.code == 2
    assert "limpet config set models.purposes.transcription.model" in ended.err


def test_a_program_hears_too(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    command = [sys.executable, "-c", "print('from a program')", "{file}"]
    (home / "config.toml").write_text(f"[models.purposes.transcription]\ncommand = {command}\n")
    (tmp_path / "a.ogg").write_bytes(b"OggS")
    ended = asyncio.run(limpet(home, "media", "transcribe", str(tmp_path / "a.ogg")))
    assert (ended.code, ended.out) == (0, "from a program\n"), ended.err


def test_the_agent_makes_a_picture_and_it_is_paid_for(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    arguments = '{"prompt": "a cat", "path": "cat.png"}'
    script = [Reply(calls=(Call("make_image", arguments),)), Reply(text=("Here it is.",))]

    async def main() -> tuple[str, str]:
        async with FakeMedia() as studio, FakeOpenAI(script) as chat:
            config = f'[providers.groq]\napi_key = "{studio.key}"\nbase_url = "{studio.base_url}"\n'
            (home / "config.toml").write_text(config + '[models.purposes]\nimage.model = "groq/gpt-image-1"\n')
            said = await limpet(home, "agent", "-m", "draw a cat", **at(chat))
            used = await limpet(home, "usage", "--by", "model", **at(chat))
            return said.out + said.err, used.out

    said, used = asyncio.run(main())
    assert "Here it is." in said
    assert (home / "workspace/cat.png").read_bytes() == png()
    assert "gpt-image-1" in used
    assert "0.1605" in used
