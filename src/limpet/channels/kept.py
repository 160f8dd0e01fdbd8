"""Small files that a channel keeps between runs."""

from __future__ import annotations

import os
from pathlib import Path


def store(file: Path, data: bytes) -> None:
    """Replace a file as a whole; its folder is made when it is not there."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_suffix(".new")
    draft.write_bytes(data)
    os.replace(draft, file)
