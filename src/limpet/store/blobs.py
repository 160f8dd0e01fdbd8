"""Blobs: attachments and spilled output as files named by their content."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterable

from limpet.errors import StoreError
from limpet.store.driver import Store
from limpet.store.sql import Connection


class BlobStore:
    """Implements the `Blobs` port in the directory `root`."""

    def __init__(self, root: str, store: Store) -> None:
        self._root = root
        self._store = store

    def path(self, blob: str) -> str:
        path = self._place(blob)
        if not os.path.exists(path):
            raise FileNotFoundError(path)
        return path

    def get(self, blob: str) -> bytes:
        return read(self._root, blob)

    async def put(self, data: bytes) -> str:
        """Keep `data`: the file is on disk before its row. Raises `StoreError`."""
        blob = hashlib.sha256(data).hexdigest()
        path = self._place(blob)
        if not os.path.exists(path):
            try:
                _write(path, data)
            except OSError as error:
                raise StoreError(f"Cannot write {path}: {error.strerror}.") from error
        now = time.time_ns() // 1_000_000

        def record(connection: Connection) -> None:
            connection.execute("INSERT INTO blobs VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (blob, len(data), now))

        await self._store.write(record)
        return blob

    def _place(self, blob: str) -> str:
        return _place(self._root, blob)


def read(root: str, blob: str) -> bytes:
    """The bytes of a blob in the directory `root`. Raises `FileNotFoundError`."""
    with open(_place(root, blob), "rb") as file:
        return file.read()


def remove(root: str, blobs: Iterable[str]) -> None:
    """Delete the files of blobs whose rows are gone."""
    for blob in blobs:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_place(root, blob))


def _place(root: str, blob: str) -> str:
    if len(blob) != 64 or not blob.isalnum():
        raise FileNotFoundError(blob)
    return os.path.join(root, blob[:2], blob)


def _write(path: str, data: bytes) -> None:
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    temporary = f"{path}.{os.getpid()}.{time.monotonic_ns()}"
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
