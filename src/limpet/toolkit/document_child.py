"""The child process that reads one document: `python -m limpet.toolkit.document_child FILE` prints its text."""

from __future__ import annotations

import resource
import sys
from importlib import import_module

MEMORY = 4 << 30
"""Bytes of address space: a document made to exhaust memory ends this process, not the agent."""


def main() -> None:
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    markitdown = import_module("markitdown")  # heavy, optional, and not there when types are checked
    text: str = markitdown.MarkItDown(enable_plugins=False).convert_local(sys.argv[1]).text_content
    if "\0" in text:  # what cannot be read as what it seems to be is given out as if it were text
        sys.exit("the file is damaged")
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
