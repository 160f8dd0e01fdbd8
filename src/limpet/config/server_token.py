"""The token of the server: whoever has it is the owner."""

from __future__ import annotations

import ipaddress
import os
import secrets
from pathlib import Path

from limpet.errors import ConfigError

TOKEN_FILE = "server-token"


def is_loopback(host: str) -> bool:
    """Whether a host to listen on, or a name asked for, is this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def server_token(setting: str, *, host: str, root: Path) -> str:
    """The token that clients have to show: the setting, else one of our own in the home (mode 600), on loopback only.

    Raises `ConfigError` for a server that others can reach without one.
    """
    if setting:
        return setting
    if not is_loopback(host):
        raise ConfigError(
            f"The server would listen on {host}, where others can reach it, without a token.",
            hint="Set one: limpet secrets set server, then limpet config set gateway.token secret:server.",
        )
    path = root / TOKEN_FILE
    try:
        return path.read_text("ascii").strip()
    except FileNotFoundError:
        made = secrets.token_urlsafe(32)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "w") as file:
            file.write(made + "\n")
        return made
