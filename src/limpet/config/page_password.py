"""The owner's password for the page: only its argon2 hash is kept, in a file of the home."""

from __future__ import annotations

from pathlib import Path

from limpet.config.write import write_atomically
from limpet.errors import InputError

PASSWORD_FILE = "web-password"
SHORTEST = 10


def is_set(root: Path) -> bool:
    return (root / PASSWORD_FILE).exists()


def keep(root: Path, text: str) -> None:
    """Keep the hash of a password. Raises `InputError` for a short one, `ImportError` without the extra `web`."""
    if len(text) < SHORTEST:
        raise InputError(f"A password has at least {SHORTEST} characters.", hint="A few words make a good one.")
    from argon2 import PasswordHasher  # the extra `web`

    write_atomically(root / PASSWORD_FILE, PasswordHasher().hash(text) + "\n")


def forget(root: Path) -> bool:
    """Have no password any more; whether there was one."""
    there = is_set(root)
    (root / PASSWORD_FILE).unlink(missing_ok=True)
    return there


def matches(root: Path, text: str) -> bool:
    """Whether it is the password. Blocks for some 50 ms, on purpose."""
    try:
        kept = (root / PASSWORD_FILE).read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return False
    from argon2 import PasswordHasher
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        return PasswordHasher().verify(kept, text)
    except (VerificationError, InvalidHashError):
        return False
