"""Attached files as text."""

from __future__ import annotations

import asyncio
import importlib.util
import io
import zipfile

import pytest

from limpet.channels.documents import LARGEST_TEXT, attached_text, decoded
from limpet.errors import InputError

without_extra = pytest.mark.skipif(
    importlib.util.find_spec("markitdown") is not None, reason="the extra documents is installed"
)
needs_extra = pytest.mark.skipif(
    importlib.util.find_spec("markitdown") is None, reason="the extra documents is not installed"
)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252", "latin-1"])
@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.md", "a.json", "a.py", "noname"])
def test_texts_need_no_library(encoding: str, name: str) -> None:
    assert asyncio.run(attached_text("Größe,é\n1,2\n".encode(encoding), name)) == "Größe,é\n1,2\n"


def test_bytes_of_no_encoding_are_read_all_the_same() -> None:
    assert decoded(b"a\x81b") == "a\x81b"


@pytest.mark.parametrize(
    ("data", "name", "words"),
    [
        (b"\x89PNG\r\n\x1a\n", "a.pdf", r"a\.png is no document that can be read \(image/png\)"),
        (b"PK\x05\x06" + bytes(18), "a.docx", r"a\.zip is no document"),
        (b"x" * (LARGEST_TEXT + 1), "a.txt", "is larger than"),
    ],
)
def test_what_is_no_document_says_so(data: bytes, name: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        asyncio.run(attached_text(data, name))


@without_extra
def test_without_the_extra_it_is_named_and_pages_are_shown_as_they_are() -> None:
    with pytest.raises(InputError, match="not installed") as caught:
        asyncio.run(attached_text(b"%PDF-1.7", "a.pdf"))
    assert "limpet[documents]" in caught.value.hint
    assert asyncio.run(attached_text(b"<html><p>hi", "a.html")) == "<html><p>hi"


@needs_extra
def test_a_page_becomes_markdown() -> None:
    page = b"<!DOCTYPE html><html><body><h1>Head</h1><p>Some <b>words</b></body></html>"
    assert asyncio.run(attached_text(page, "a.html")) == "# Head\n\nSome **words**"


@needs_extra
def test_a_document_is_read_whatever_it_is_called() -> None:
    whole = io.BytesIO()
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    kinds = "http://schemas.openxmlformats.org/package/2006"
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{kinds}/content-types"><Default Extension="rels" ContentType="application/vnd.'
            'openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/vnd.'
            'openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>',
        )
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{kinds}/relationships"><Relationship Id="a" Target="word/document.xml" Type="http://'
            'schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"/></Relationships>',
        )
        text = f"<w:document {space}><w:body><w:p><w:r><w:t>Pay 42</w:t></w:r></w:p></w:body></w:document>"
        archive.writestr("word/document.xml", text)
    assert asyncio.run(attached_text(whole.getvalue(), "a.bin")) == "Pay 42"
