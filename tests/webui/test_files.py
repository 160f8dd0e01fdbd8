"""Stored files for the browser."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from starlette.responses import FileResponse, Response

from limpet.webui.files import answer

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 16


def given(folder: Path, data: bytes, called: str) -> Response:
    """The answer for a file with `data`."""
    name = hashlib.sha256(data).hexdigest()
    (folder / name).write_bytes(data)
    return answer(name, called, path=lambda blob: str(folder / blob))


def test_a_picture_is_shown_whatever_it_is_called(tmp_path: Path) -> None:
    found = given(tmp_path, PNG, "page.html")
    assert found.headers["content-type"] == "image/png"
    assert "content-disposition" not in found.headers


@pytest.mark.parametrize("data", [b"<html><script>x</script>", b"<svg onload='x' xmlns='y'/>", b"%PDF-1.7", b"\0\1\2"])
def test_all_else_is_a_download_that_is_never_run(tmp_path: Path, data: bytes) -> None:
    found = given(tmp_path, data, 'evil".png\r\nX: y')
    assert isinstance(found, FileResponse)
    assert found.headers["content-type"] == "application/octet-stream"
    assert found.headers["content-disposition"].startswith("attachment")
    assert found.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert "x" not in found.headers


@pytest.mark.parametrize("name", ["", "../server-token", "0" * 63, "0" * 64, "é" * 64])
def test_what_is_no_file_of_ours_is_not_there(tmp_path: Path, name: str) -> None:
    def path(blob: str) -> str:
        raise FileNotFoundError(blob)

    assert answer(name, "", path=path).status_code == 404
