"""The child process that reads one document: `python -m limpet.toolkit.document_child FILE` prints its text."""

from __future__ import annotations

import resource
import sys
from importlib import import_module

MEMORY = 4 << 30
"""Bytes of address space: a document made to exhaust memory ends this process, not the agent."""

BINARY = (b"%PDF", b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
"""How documents begin that are no text."""


def main() -> None:
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    markitdown = import_module("markitdown")  # heavy, optional, and not there when types are checked
    text: str = markitdown.MarkItDown(enable_plugins=False).convert_local(sys.argv[1]).text_content
    with open(sys.argv[1], "rb") as file:
        start = file.read(4)
    # What cannot be read as what it seems to be is given out as if it were text.
    if "\0" in text or (start in BINARY and text.startswith(start.decode("latin-1"))):
        sys.exit("the file is damaged")
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
