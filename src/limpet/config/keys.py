"""Where the key of the secrets is kept: the keyring of the system, or a file for this user only."""

from __future__ import annotations

import base64
import binascii
import importlib.util
import logging
from pathlib import Path
from typing import Protocol

from limpet.config.write import write_atomically
from limpet.errors import ConfigError

log = logging.getLogger(__name__)

SERVICE = "limpet"


class KeyKeeper(Protocol):
    """Keeps keys by name."""

    def keep(self, name: str, key: bytes) -> bool:
        """Whether the key is kept now, and can be found again."""
        ...

    def find(self, name: str) -> bytes | None: ...

    def forget(self, name: str) -> None: ...


class KeyFiles:
    """One file of mode 600 for each key in the home `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def path(self, name: str) -> Path:
        return self._root / f"secrets-{name}.key"

    def keep(self, name: str, key: bytes) -> bool:
        try:
            write_atomically(self.path(name), base64.b64encode(key).decode() + "\n")
        except ConfigError as error:
            log.warning("%s", error)
            return False
        return True

    def find(self, name: str) -> bytes | None:
        try:
            return _key(self.path(name).read_text("ascii"))
        except (OSError, UnicodeDecodeError):
            return None

    def forget(self, name: str) -> None:
        self.path(name).unlink(missing_ok=True)


class Keyring:
    """The keyring of the system by the package `keyring`; `root` tells homes apart."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def keep(self, name: str, key: bytes) -> bool:
        import keyring  # optional, and slow to import
        from keyring.errors import KeyringError

        try:
            keyring.set_password(SERVICE, self._user(name), base64.b64encode(key).decode())
            return self.find(name) == key
        except (KeyringError, OSError, RuntimeError) as error:
            log.warning("the keyring of the system cannot be used, a file is used instead: %s", error)
            return False

    def find(self, name: str) -> bytes | None:
        import keyring
        from keyring.errors import KeyringError

        try:
            return _key(keyring.get_password(SERVICE, self._user(name)) or "")
        except (KeyringError, OSError, RuntimeError) as error:
            raise ConfigError(
                f"The keyring of the system, which has the key of the secrets, cannot be read: {error}",
                hint="Unlock it. Nothing is lost.",
            ) from None

    def forget(self, name: str) -> None:
        import keyring
        from keyring.errors import KeyringError

        try:
            keyring.delete_password(SERVICE, self._user(name))
        except (KeyringError, OSError, RuntimeError) as error:
            log.warning("an old key stays in the keyring of the system: %s", error)

    def _user(self, name: str) -> str:
        return f"{self._root}#{name}"


def keyring_keeper(root: Path) -> KeyKeeper | None:
    """The keyring of the system; None where the package or a usable keyring is missing."""
    if importlib.util.find_spec("keyring") is None:
        return None
    import keyring

    return Keyring(root) if keyring.get_keyring().priority >= 1 else None


def _key(text: str) -> bytes | None:
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if len(key) == 32 else None
