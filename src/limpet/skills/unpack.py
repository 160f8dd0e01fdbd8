"""Unpacking a zip of strangers: every entry is checked before anything is written, and counted while it is."""

from __future__ import annotations

import io
import os
import stat
import zipfile

from limpet.errors import InputError
from limpet.toolkit.unseen import is_unseen

MOST_ENTRIES = 500
MOST_BYTES = 20_000_000
"""Of all files together, unpacked."""
_RATIO = 200
"""Times that the whole may be larger than the archive."""
_DEEPEST = 12


def unpack(data: bytes, folder: str) -> None:
    """Write the files of the archive `data` below the empty `folder`. Raises `InputError` that says what is wrong."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if len(entries) > MOST_ENTRIES:
                raise InputError(f"The archive has {len(entries):,} entries; at most {MOST_ENTRIES} are taken.")
            names = [_checked(entry) for entry in entries]
            _check_twice(names)
            left = min(MOST_BYTES, max(1_000_000, len(data) * _RATIO))
            for entry, name in zip(entries, names, strict=True):
                left -= _write(archive, entry, os.path.join(folder, name), left=left)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as error:
        raise InputError(f"The archive cannot be unpacked: {error}.") from None


def _checked(entry: zipfile.ZipInfo) -> str:
    """The entry's path below the folder. Raises `InputError`."""
    name = entry.orig_filename
    mode = entry.external_attr >> 16
    parts = name.rstrip("/").split("/")
    if name.startswith("/") or "\\" in name or ":" in name or "\0" in name:
        raise _refused(name, "is no relative path")
    if any(part in ("", ".", "..") for part in parts) or len(parts) > _DEEPEST or len(name) > 400:
        raise _refused(name, "leads out of the folder, or too deep")
    if any(is_unseen(character) for character in name):
        raise _refused(name, "holds characters that nobody sees")
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise _refused(name, "is a link or something else than a file")
    if entry.flag_bits & 0x1:
        raise _refused(name, "is encrypted, so nobody can look at it")
    return "/".join(parts)


def _check_twice(names: list[str]) -> None:
    """No path may stand there twice, also where case does not matter, nor below another file."""
    seen: set[str] = set()
    for name in names:
        if name.casefold() in seen:
            raise _refused(name, "is there twice")
        seen.add(name.casefold())


def _write(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: str, *, left: int) -> int:
    """Write one entry; gives its bytes. What the archive claims of its size is not believed."""
    if entry.is_dir():
        os.makedirs(path, exist_ok=True)
        return 0
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with archive.open(entry) as source:
        data = source.read(left + 1)
    if len(data) > left:
        raise InputError("The archive unpacks to more than a skill may have.", hint="Nothing of it was kept.")
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(handle, "wb") as file:
        file.write(data)
    if (entry.external_attr >> 16) & 0o100:
        os.chmod(path, 0o700)
    return len(data)


def _refused(name: str, why: str) -> InputError:
    return InputError(f"The archive is refused: {name[:100]!r} {why}.")
