"""Archives of strangers."""

from __future__ import annotations

import io
import stat
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.errors import InputError
from limpet.skills.unpack import unpack


def archive(*files: tuple[str, bytes], mode: int = 0) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in files:
            entry = zipfile.ZipInfo("x")
            entry.filename = name
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = mode << 16
            made.writestr(entry, data)
    return buffer.getvalue()


def test_files_come_out_as_they_went_in(tmp_path: Path) -> None:
    unpack(archive(("tea/SKILL.md", b"x"), ("tea/run.sh", b"y"), mode=0o755), str(tmp_path))
    assert (tmp_path / "tea/SKILL.md").read_bytes() == b"x"
    assert (tmp_path / "tea/run.sh").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "name", ["../x", "/x", "a/../../x", "a\\..\\x", "C:/x", "a//x", "./x", "/".join("a" * 20), "a\u202eb", "x" * 500]
)
def test_names_that_lead_out_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError):
        unpack(archive((name, b"x")), str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_links_doubles_bombs_and_crowds_are_refused(tmp_path: Path) -> None:
    bad = [
        archive(("link", b"/etc/passwd"), mode=stat.S_IFLNK | 0o777),
        archive(("A", b"x"), ("a", b"y")),
        archive(("bomb", b"\0" * 30_000_000)),
        archive(*((f"bomb{number}", b"\0" * 1_000_000) for number in range(30))),
        archive(*((f"f{number}", b"") for number in range(501))),
        archive(("a", b"x"), ("a/b", b"y")),
        b"no archive",
    ]
    for number, data in enumerate(bad):
        folder = tmp_path / str(number)
        folder.mkdir()
        with pytest.raises(InputError):
            unpack(data, str(folder))


@given(st.binary(max_size=200))
def test_broken_archives_are_refused(data: bytes) -> None:
    with pytest.raises(InputError):
        unpack(data, "/nonexistent")
