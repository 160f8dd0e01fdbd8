"""What a file is, and how it may be called."""

from __future__ import annotations

import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.channels.media import LONGEST_NAME, OTHER, PLAIN, safe_name, sendable, sniff
from limpet.types.envelope import Attachment


def zipped(*names: str) -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return whole.getvalue()


OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)
EXAMPLES = [
    (b"\x89PNG\r\n\x1a\n\0\0", "image/png"),
    (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
    (b"GIF89a", "image/gif"),
    (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
    (b"RIFF\0\0\0\0WAVEfmt ", "audio/wav"),
    (b"\0\0\0\x18ftypheic", "image/heic"),
    (b"\0\0\0\x18ftypM4A ", "audio/mp4"),
    (b"\0\0\0\x18ftypisom", "video/mp4"),
    (b"\x1a\x45\xdf\xa3\x01\x42\x82\x84webm", "video/webm"),
    (b"OggS\0\x02" + bytes(22) + b"OpusHead", "audio/ogg"),
    (b"ID3\x04", "audio/mpeg"),
    (b"\xff\xfb\x90\x64\0\0", "audio/mpeg"),
    (b"\xff\xf1\x50\x80\0\0", "audio/aac"),
    (b"fLaC\0", "audio/flac"),
    (b"%PDF-1.7\n", "application/pdf"),
    (zipped("[Content_Types].xml", "word/document.xml"), "vnd.openxmlformats-officedocument.wordprocessingml.document"),
    (zipped("xl/workbook.xml"), "vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    (zipped("ppt/presentation.xml"), "vnd.openxmlformats-officedocument.presentationml.presentation"),
    (zipped("a.txt"), "application/zip"),
    (OLE + "Workbook".encode("utf-16-le"), "application/vnd.ms-excel"),
    (OLE + "WordDocument".encode("utf-16-le"), "application/msword"),
    (OLE, "application/x-ole-storage"),
    (b"<!DOCTYPE html><p>", "text/html"),
    (b"just words \xe4", "text/plain"),
    ("Wörter".encode("utf-16"), "text/plain"),
    (b"\0\1\2\3", "application/octet-stream"),
    (b"", "text/plain"),
]


@pytest.mark.parametrize(("data", "mime"), EXAMPLES)
def test_a_file_is_known_by_its_bytes(data: bytes, mime: str) -> None:
    assert sniff(data, "any.exe").mime.endswith(mime)


@pytest.mark.parametrize(("name", "mime"), [("a.csv", "text/csv"), ("a.md", "text/markdown"), ("a.py", "text/plain")])
def test_texts_are_told_apart_by_their_name(name: str, mime: str) -> None:
    assert sniff(b"a,b\n1,2\n", name).mime == mime


@pytest.mark.parametrize(
    ("name", "data", "safe"),
    [
        ("../../etc/passwd", b"x", "passwd.txt"),
        ("C:\\Users\\pat\\shot.png", b"\x89PNG\r\n\x1a\n", "shot.png"),
        ("invoice\u202efdp.exe", b"MZ\0\0", "invoicefdp.exe"),
        ("photo.exe", b"\xff\xd8\xff\xe0", "photo.jpg"),
        ("photo.JPEG", b"\xff\xd8\xff\xe0", "photo.JPEG"),
        ("page.png", b"<script>", "page.txt"),
        (".bashrc", b"x", "bashrc.txt"),
        ("a\0b\n c.txt", b"x", "ab  c.txt"),
        ("con.txt", b"x", "_con.txt"),
        ("", b"x", "file.txt"),
        ("...", b"\0", "file"),
        ("data.tar.gz", b"\x1f\x8b\x08", "data.tar.gz"),
        ("code.py", b"x", "code.py"),
    ],
)
def test_names_are_made_safe(name: str, data: bytes, safe: str) -> None:
    assert safe_name(name, sniff(data, name)) == safe


@given(st.text(max_size=300), st.sampled_from([data for data, _ in EXAMPLES]))
def test_a_safe_name_is_safe_and_stays(name: str, data: bytes) -> None:
    kind = sniff(data, name)
    safe = safe_name(name, kind)
    assert 0 < len(safe.encode()) <= LONGEST_NAME
    assert not safe.startswith((".", " "))
    assert not set(safe) & set('/\\\0\n\r\t<>:"|?*\u202e')
    assert safe_name(safe, kind) == safe


def test_what_a_platform_does_not_take_is_told_apart() -> None:
    small, large = Attachment("a", "a.png", size=10), Attachment("b", "b.png", size=11)
    assert sendable((large, small), 10) == ((small,), (large,))


def test_kinds_that_are_no_kind() -> None:
    assert sniff(b"x", "a.unknown") == PLAIN
    assert sniff(b"\0\0\0", "a.png") == OTHER
    assert safe_name("a.png", OTHER) == "a.bin"
