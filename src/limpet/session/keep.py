"""Archives of sessions that are deleted: one compressed file each, on the disk and read back before anything goes."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from limpet.errors import StoreError
from limpet.session.export import jsonl
from limpet.store.sessions import SessionRow
from limpet.types.entry import Entry

ENDING = ".jsonl.gz"


def archive(folder: str, session: SessionRow, log: Sequence[Entry]) -> str:
    """Write a session into a file of the `folder` (absolute, made if missing); gives its path. Raises `StoreError`.

    The first line is the session's row, each further one an entry as `limpet sessions export --format jsonl` gives it.
    """
    import gzip  # rare

    day = time.strftime("%Y-%m-%d", time.gmtime((session.ended or session.updated) / 1000))
    path = Path(folder) / f"{day}-{session.id}{ENDING}"
    row = {name: getattr(session, name) for name in session.__struct_fields__}
    data = msgspec.json.encode({"session": row}) + b"\n" + jsonl(log).encode()
    temporary = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(gzip.compress(data, mtime=0))
            file.flush()
            os.fsync(file.fileno())
        if gzip.decompress(temporary.read_bytes()) != data:
            raise StoreError(f"{temporary} does not hold what was written; nothing was deleted.")
        temporary.rename(path)
        folder_descriptor = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder_descriptor)
        finally:
            os.close(folder_descriptor)
    except OSError as error:
        raise StoreError(f"Cannot write {path}: {error.strerror}. Nothing was deleted.") from error
    return str(path)


def old_archives(folder: str, *, before: int) -> list[Path]:
    """The archives written before a moment (UTC ms)."""
    found = Path(folder).glob(f"*{ENDING}")
    return sorted(path for path in found if path.stat().st_mtime * 1000 < before)
