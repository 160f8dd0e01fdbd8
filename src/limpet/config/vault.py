"""The store of secrets in the home: `secrets.json`, each value encrypted (AES-GCM) under one key.

The key is in the keyring of the system where the package `keyring` finds one, else in a file for this user only. The
store names its key, and a new key gets a new name: so whichever of the two is written last, a crash between leaves
a store that can be read and at most a key too many. Names are readable without the key.
"""

from __future__ import annotations

import base64
import fcntl
import os
import re
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct, field, structs

from limpet.config.keys import KeyFiles, KeyKeeper, keyring_keeper
from limpet.config.secrets import STORE
from limpet.config.write import write_atomically
from limpet.errors import ConfigError, InputError

VERSION = 1
PATIENCE = 10.0
"""Seconds to wait for another process that changes the store."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_AGAIN = "Set the secrets again: limpet secrets set NAME."

Place = Literal["keyring", "file"]


class Sealed(Struct, frozen=True):
    """One secret: nonce and ciphertext in base64, and when it was set (UTC milliseconds)."""

    value: str
    set: int


class Contents(Struct, frozen=True):
    """The file. `key` names the key, `place` where it is kept."""

    version: int = VERSION
    place: Place = "file"
    key: str = ""
    secrets: dict[str, Sealed] = field(default_factory=dict[str, Sealed])


class Vault:
    """The store of the home `root`. Each call reads the file anew; each change is one file replaced under a lock."""

    def __init__(self, root: Path, *, keyring: KeyKeeper | None = None) -> None:
        """`keyring` stands for that of the system."""
        self.path = root / STORE
        self._root = root
        self._keyring = keyring

    @property
    def exists(self) -> bool:
        return self.path.exists()

    def names(self) -> dict[str, int]:
        """Each secret's name with when it was set (UTC milliseconds). Raises `ConfigError` for a damaged file."""
        return {name: one.set for name, one in sorted(self._read().secrets.items())}

    @property
    def place(self) -> Place:
        return self._read().place

    def value(self, name: str) -> str:
        """The secret `name`. Raises `ConfigError` with the nearest name, or with what is wrong and what to do."""
        contents = self._read()
        if name not in contents.secrets:
            raise ConfigError(f"There is no secret {name}.", hint=_near(name, contents.secrets))
        return self._open(contents, self._key(contents), name)

    def known(self) -> dict[str, str]:
        """All that must not leave the process: each secret that can be opened, and the key. Raises `ConfigError`."""
        contents = self._read()
        if not contents.key:
            return {}
        key = self._key(contents)
        found = {"key of the store": base64.b64encode(key).decode()}
        for name in contents.secrets:
            with suppress(ConfigError):  # told to whoever needs it
                found[name] = self._open(contents, key, name)
        return found

    def put(self, name: str, value: str) -> None:
        """Keep `value` as the secret `name`. Raises `InputError`, `ConfigError`; then nothing changed."""
        if not NAME.fullmatch(name):
            raise InputError(f"{name!r} is no name for a secret.", hint="Use letters, digits, dots, - and _.")
        if not value:
            raise InputError("The value is empty.", hint="Pass it on standard input, or type it when asked.")
        with self._lock():
            contents = self._read()
            if contents.key:
                key = self._key(contents)
                self._check(contents, key)
            else:
                contents, key = self._new_key(contents)
            sealed = Sealed(_seal(key, name, value), time.time_ns() // 1_000_000)
            self._write(structs.replace(contents, secrets={**contents.secrets, name: sealed}))

    def remove(self, name: str) -> None:
        """Forget the secret `name`. Raises `ConfigError` when there is none."""
        with self._lock():
            contents = self._read()
            if name not in contents.secrets:
                raise ConfigError(f"There is no secret {name}.", hint=_near(name, contents.secrets))
            self._write(structs.replace(contents, secrets={n: s for n, s in contents.secrets.items() if n != name}))

    def rotate(self) -> int:
        """Encrypt everything under a new key; gives how many secrets. Raises `ConfigError`, then nothing changed."""
        with self._lock():
            old = self._read()
            values: dict[str, str] = {}
            if old.secrets:
                before = self._key(old)
                values = {name: self._open(old, before, name) for name in old.secrets}
            contents, key = self._new_key(old)
            sealed = {name: Sealed(_seal(key, name, value), old.secrets[name].set) for name, value in values.items()}
            self._write(structs.replace(contents, secrets=sealed))
            if old.key:
                self._keeper(old.place).forget(old.key)
            return len(values)

    def _new_key(self, contents: Contents) -> tuple[Contents, bytes]:
        keyring = self._keyring or keyring_keeper(self._root)
        name, key = os.urandom(6).hex(), os.urandom(32)
        place: Place = "keyring" if keyring and keyring.keep(name, key) else "file"
        if place == "file" and not KeyFiles(self._root).keep(name, key):
            raise ConfigError(
                f"The key of the secrets cannot be written to {self._root}.", hint="Make room, or mend its mode."
            )
        return structs.replace(contents, place=place, key=name), key

    def _keeper(self, place: Place) -> KeyKeeper:
        if place == "file":
            return KeyFiles(self._root)
        found = self._keyring or keyring_keeper(self._root)
        if found is None:
            raise ConfigError(
                f"The key of {self.path} is in the keyring of the system, which is not at hand.",
                hint="Install it (pip install 'limpet[keyring]') and unlock it. Nothing is lost.",
            )
        return found

    def _key(self, contents: Contents) -> bytes:
        key = self._keeper(contents.place).find(contents.key)
        if key is None:
            where = KeyFiles(self._root).path(contents.key) if contents.place == "file" else "the keyring of the system"
            raise ConfigError(
                f"The key of {self.path} is not in {where}.",
                hint=f"Bring the key back from a backup; without it move {self.path} away. {_AGAIN}",
            )
        return key

    def _check(self, contents: Contents, key: bytes) -> None:
        """A wrong key must not seal what could not be opened later: one of the others has to open with it."""
        fault: ConfigError | None = None
        for name in contents.secrets:
            try:
                self._open(contents, key, name)
                return
            except ConfigError as error:
                fault = error
        if fault is not None:
            raise fault

    def _open(self, contents: Contents, key: bytes, name: str) -> str:
        from cryptography.exceptions import InvalidTag  # only where there is a store: 20 ms
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            data = base64.b64decode(contents.secrets[name].value, validate=True)
            return AESGCM(key).decrypt(data[:12], data[12:], name.encode()).decode()
        except (InvalidTag, ValueError):
            raise ConfigError(
                f"The secret {name} in {self.path} cannot be decrypted: it is damaged, or the key is another one.",
                hint=f"Bring file and key back from one backup, or set it again: limpet secrets remove {name}, "
                f"then limpet secrets set {name}.",
            ) from None

    def _read(self) -> Contents:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return Contents()
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be read: {error.strerror}.", hint="Mend its mode (600).") from None
        try:
            contents = msgspec.json.decode(data, type=Contents)
        except msgspec.DecodeError as error:
            raise ConfigError(
                f"{self.path} is damaged: {error}.",
                hint=f"It was left as it is. Bring it back from a backup, or move it away. {_AGAIN}",
            ) from None
        if contents.version > VERSION:
            raise ConfigError(f"{self.path} was written by a newer Limpet.", hint="Update Limpet.")
        return contents

    def _write(self, contents: Contents) -> None:
        write_atomically(self.path, msgspec.json.format(msgspec.json.encode(contents), indent=1).decode() + "\n")

    @contextmanager
    def _lock(self) -> Generator[None]:
        """One process at a time. Raises `ConfigError` when another one does not come to its end."""
        path = self._root / "secrets.lock"
        try:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConfigError(
                f"{path} cannot be opened: {error.strerror}.", hint="Mend the mode of the folder."
            ) from None
        try:
            _wait_for(descriptor, path)
            yield
        finally:
            os.close(descriptor)


def _wait_for(descriptor: int, path: Path) -> None:
    give_up = time.monotonic() + PATIENCE
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        if time.monotonic() > give_up:
            raise ConfigError(f"Another process has held {path} for {PATIENCE:.0f} s.", hint="See what it does.")
        time.sleep(0.02)


def _seal(key: bytes, name: str, value: str) -> str:
    """The name is bound to the value, so that two entries cannot be swapped."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = os.urandom(12)
    return base64.b64encode(nonce + AESGCM(key).encrypt(nonce, value.encode(), name.encode())).decode()


def _near(name: str, known: Mapping[str, Sealed]) -> str:
    import difflib  # only for mistakes: 5 ms

    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    if near:
        return f"Did you mean {near[0]}?"
    return f"There are: {', '.join(sorted(known))}." if known else f"Set it: limpet secrets set {name}"
