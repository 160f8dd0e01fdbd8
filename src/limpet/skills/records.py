"""What is kept of skills in the home: where each was installed from, its files, and what the owner granted.

`skills.lock.json` names every file of an installed skill by its hash, so that a change is seen. A grant names the
digest of the whole skill: when the skill changes, the owner is asked anew.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct, field

from limpet.errors import InputError
from limpet.skills.skill import Needs

NAME = "skills.lock.json"
_CHUNK = 1 << 20


class Installed(Struct, frozen=True, omit_defaults=True):
    """A skill that was installed: `source` as it was given, `revision` what it was then, files with their SHA-256.

    `quarantine` says why it is not offered; empty when it is. `at` is UTC milliseconds.
    """

    source: str
    folder: str
    digest: str
    files: dict[str, str]
    at: int = 0
    revision: str = ""
    quarantine: str = ""


class Granted(Struct, frozen=True):
    """What the owner granted to the skill whose files have `digest`."""

    digest: str
    needs: Needs
    at: int = 0


class Records(Struct, frozen=True):
    """The lock file."""

    version: int = 1
    installed: dict[str, Installed] = field(default_factory=dict[str, Installed])
    granted: dict[str, Granted] = field(default_factory=dict[str, Granted])


def load(home: Path) -> Records:
    """The records of a home. Raises `InputError` when they cannot be read: nothing is taken for granted then."""
    path = home / NAME
    try:
        return msgspec.json.decode(path.read_bytes(), type=Records)
    except FileNotFoundError:
        return Records()
    except (OSError, msgspec.DecodeError) as error:
        raise InputError(
            f"{path} cannot be read: {error}.", hint="Take it back from a backup, or delete it and install anew."
        ) from None


def save(home: Path, records: Records) -> None:
    """Write the records, for this user only."""
    path = home / NAME
    draft = path.with_name(f"{NAME}.{os.getpid()}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(handle, "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(records)))
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def files_of(folder: str) -> dict[str, str]:
    """Each file below `folder` with its SHA-256, by its path; links by where they lead. Raises `OSError`."""
    found: dict[str, str] = {}
    for place, folders, names in os.walk(folder, onerror=_raise):
        folders.sort()
        for name in sorted((*names, *(one for one in folders if os.path.islink(os.path.join(place, one))))):
            path = os.path.join(place, name)
            found[os.path.relpath(path, folder).encode("utf-8", "backslashreplace").decode()] = _mark(path)
    return found


def digest_of(files: Mapping[str, str]) -> str:
    """One SHA-256 over all files."""
    return hashlib.sha256(
        "".join(f"{name}\0{files[name]}\n" for name in sorted(files)).encode("utf-8", "replace")
    ).hexdigest()


def drift(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """What is otherwise now, a line for each file."""
    lines = [f"added {name}" for name in sorted(set(now) - set(before))]
    lines += [f"removed {name}" for name in sorted(set(before) - set(now))]
    return lines + [f"changed {name}" for name in sorted(set(before) & set(now)) if before[name] != now[name]]


def _mark(path: str) -> str:
    if os.path.islink(path):
        return f"link:{os.readlink(path)}"
    if not os.path.isfile(path):
        return "special"
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while data := file.read(_CHUNK):
            found.update(data)
    return found.hexdigest() + ("x" if os.stat(path).st_mode & 0o100 else "")


def _raise(error: OSError) -> None:
    raise error
