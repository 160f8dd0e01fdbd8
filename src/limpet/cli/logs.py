"""Logging: warnings and tracebacks go to a file in the home, with --verbose everything to standard error as well.

Both pass through a formatter that takes known secrets out, so that no library can put one there.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Mapping

import msgspec

from limpet.config.load import load_settings
from limpet.config.paths import Home
from limpet.config.secrets import SecretRedactor, known_secrets
from limpet.errors import LimpetError

LARGEST = 5_000_000
"""Bytes after which the log file is put aside; one older file is kept."""


class Secretless(logging.Formatter):
    """Formats a record, traceback included, without secrets. The secrets are looked up when the first one comes."""

    def __init__(self, home: Home, environ: Mapping[str, str], *, form: str | None = None) -> None:
        super().__init__(form)
        self._find: Callable[[], SecretRedactor] = lambda: redactor_of(home, environ)
        self._redactor: SecretRedactor | None = None

    def format(self, record: logging.LogRecord) -> str:
        return self.redact(super().format(record))

    def redact(self, text: str) -> str:
        """`text` without known secrets."""
        if self._redactor is None:
            self._redactor = self._find()
        return self._redactor.redact(text)


class HomeLog(logging.Handler):
    """Appends JSON lines to `logs/limpet.log`. A home that is not there, or not writable, is no reason to fail."""

    def __init__(self, home: Home, *, largest: int = LARGEST) -> None:
        super().__init__(logging.WARNING)
        self.path = home.logs / "limpet.log"
        self._largest = largest

    def emit(self, record: logging.LogRecord) -> None:
        line = {
            "time": int(record.created * 1000),
            "level": record.levelname.lower(),
            "from": record.name,
            "text": self.format(record).encode("utf-8", "replace").decode(),
        }
        with contextlib.suppress(OSError):
            self._append(msgspec.json.encode(line) + b"\n")

    def _append(self, line: bytes) -> None:
        with contextlib.suppress(FileNotFoundError):
            if self.path.stat().st_size > self._largest:
                os.replace(self.path, self.path.with_suffix(".log.1"))
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)


def prepare_logging(home: Home, environ: Mapping[str, str], *, verbose: bool) -> None:
    """Send what is logged to its places, in place of where it went before."""
    root = logging.getLogger()
    file = HomeLog(home)
    file.setFormatter(Secretless(home, environ))
    handlers: list[logging.Handler] = [file]
    if verbose:
        terminal = logging.StreamHandler()
        terminal.setFormatter(Secretless(home, environ, form="%(asctime)s %(name)s %(levelname)s %(message)s"))
        handlers.append(terminal)
        root.setLevel(logging.INFO)
    for handler in [handler for handler in root.handlers if isinstance(handler.formatter, Secretless)]:
        root.removeHandler(handler)
    for handler in handlers:
        root.addHandler(handler)


def without_secrets(text: str) -> str:
    """`text` without known secrets. Before logging is prepared nothing secret has been read."""
    formatters = [handler.formatter for handler in logging.getLogger().handlers]
    found = next((formatter for formatter in formatters if isinstance(formatter, Secretless)), None)
    return found.redact(text) if found else text


def where_to_look() -> str:
    """What to tell a person about a fault of ours."""
    logs = [handler for handler in logging.getLogger().handlers if isinstance(handler, HomeLog)]
    if logs and logs[0].path.exists():
        return f"What was recorded is not lost. The details are in {logs[0].path}: please report them."
    return "What was recorded is not lost. `limpet --verbose …` shows the details: please report them."


def redactor_of(home: Home, environ: Mapping[str, str]) -> SecretRedactor:
    """For every secret that can be known from the configuration, where that can be read, and the environment."""
    try:
        table = load_settings(home.config, environ).table
    except LimpetError:
        table = {}
    return SecretRedactor(known_secrets(table, root=home.root, environ=environ))
