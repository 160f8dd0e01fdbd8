"""`FolderBlobs`: the port `Blobs` over a plain folder, for tests."""

from __future__ import annotations

import hashlib
from pathlib import Path


class FolderBlobs:
    """Keeps each blob as a file of its hash in `folder`, which is made when first needed."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)

    async def put(self, data: bytes) -> str:
        blob = hashlib.sha256(data).hexdigest()
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / blob).write_bytes(data)
        return blob

    def path(self, blob: str) -> str:
        found = self._folder / blob
        if not found.is_file():
            raise FileNotFoundError(blob)
        return str(found)

    def get(self, blob: str) -> bytes:
        return Path(self.path(blob)).read_bytes()
