"""Documents are read by a child with limits."""

from __future__ import annotations

import asyncio
import importlib.util

import pytest

from limpet.errors import InputError
from limpet.toolkit import documents

needs_extra = pytest.mark.skipif(
    importlib.util.find_spec("markitdown") is None, reason="the extra documents is not installed"
)


@needs_extra
def test_one_that_takes_too_long_is_given_up() -> None:
    with pytest.raises(InputError, match=r"was not done after 0\.01 s"):
        asyncio.run(documents.document_text(b"%PDF-1.7", "slow.pdf", seconds=0.01))


@needs_extra
@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"PK\x03\x04\0\xff", "cannot be read: .*zip"),
        (b"PK\x03\x04 and nothing more\0\xff", "cannot be read: the file is damaged"),
        (bytes(documents.LARGEST + 1), "is larger than"),
    ],
)
def test_one_that_cannot_be_read_says_why(data: bytes, words: str) -> None:
    with pytest.raises(InputError, match=words):
        asyncio.run(documents.document_text(data, "a.docx"))


@pytest.mark.skipif(importlib.util.find_spec("markitdown") is not None, reason="the extra documents is installed")
def test_without_the_extra_it_is_named() -> None:
    with pytest.raises(InputError, match="not installed") as caught:
        asyncio.run(documents.document_text(b"%PDF-1.7", "a.pdf"))
    assert "limpet[documents]" in caught.value.hint
