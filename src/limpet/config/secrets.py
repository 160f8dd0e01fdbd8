"""Secrets: references instead of values in the file, and known values kept out of all that leaves the process."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

from limpet.config.table import Table, dotted, is_list, leaves
from limpet.errors import ConfigError

if TYPE_CHECKING:
    from limpet.config.vault import Vault

STORE = "secrets.json"
"""The store of secrets in the home."""
SHORTEST = 8
"""Values with fewer characters are not redacted: they would tear holes into ordinary text."""

SECRET_WORDS = (
    "key",
    "keys",
    "token",
    "secret",
    "password",
    "passphrase",
    "credential",
    "credentials",
    "authorization",
)
VARIABLE_ENDINGS = (
    "_API_KEY",
    "_TOKEN",
    "_SECRET",
    "_PASSWORD",
    "_SECRET_KEY",
    "_ACCESS_KEY",
    "_APIKEY",
    "_PASSPHRASE",
)


def resolve(reference: str, *, key: str, root: Path, environ: Mapping[str, str]) -> str:
    """The value that `reference` stands for: `env:NAME`, `file:PATH` (from the home `root`), `secret:NAME` (of the
    store there), else itself.

    `key` names the setting in errors. Raises `ConfigError` when there is no such variable, file or secret.
    """
    kind, _, name = reference.partition(":")
    if kind == "secret":
        try:
            return _vault(root).value(name.strip())
        except ConfigError as error:
            raise ConfigError(f"{key}: {error}", hint=error.hint) from None
    if kind == "env":
        value = environ.get(name.strip(), "")
        if not value:
            raise ConfigError(
                f"{key}: the environment variable {name.strip()} is not set.", hint="Set it, or change the setting."
            )
        return value
    if kind == "file":
        path = root / Path(name.strip()).expanduser()
        try:
            return path.read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError, RuntimeError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise ConfigError(f"{key}: {path} cannot be read: {reason}.", hint="Put the secret there.") from None
    return reference


def is_reference(value: str) -> bool:
    return value.startswith(("env:", "file:", "secret:"))


def is_secret_name(name: str) -> bool:
    """Whether a setting of this name holds a secret: `api_key`, `bot_token`, `password` … but not `max_tokens`."""
    return any(word in SECRET_WORDS for word in name.lower().replace("-", "_").split("_"))


def secret_settings(table: Table) -> Iterator[tuple[str, str]]:
    """(dotted key, reference) for each setting of the plain data that holds a secret, known to the schema or not."""
    for key, value in leaves(table):
        values = list(value) if is_list(value) else [value]
        for number, one in enumerate(values):
            if isinstance(one, str) and one and (is_secret_name(key[-1]) or is_reference(one)):
                yield dotted(key) if len(values) == 1 else f"{dotted(key)}.{number}", one


def literal_secrets(table: Table) -> list[str]:
    """Settings whose secret stands in the file itself, for the doctor to warn about."""
    return [key for key, value in secret_settings(table) if not is_reference(value)]


def known_secrets(table: Table, *, root: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Every secret that can be known, by its name; all of the store, used or not.

    References that lead nowhere are left out.
    """
    found = stored_secrets(root)
    for key, reference in secret_settings(table):
        try:
            value = resolve(reference, key=key, root=root, environ=environ)
        except ConfigError:
            continue
        found[key] = value.removeprefix("Bearer ").removeprefix("Basic ")
    for name, value in environ.items():
        if name.upper().endswith(VARIABLE_ENDINGS) and "/" not in value[:1] and len(value) >= SHORTEST + 4:
            found[name] = value
    return found


def stored_secrets(root: Path) -> dict[str, str]:
    """All secrets of the store; none where it cannot be read, which whoever needs one of them is told."""
    if not (root / STORE).exists():
        return {}
    try:
        return _vault(root).known()
    except ConfigError:
        return {}


def _vault(root: Path) -> Vault:
    from limpet.config.vault import Vault  # only where there is a store

    return Vault(root)


class SecretRedactor:
    """The `Redactor` port: replaces known values, in every form in which they usually appear."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        pairs: dict[str, str] = {}
        for name, value in secrets.items():
            if len(value) >= SHORTEST:
                placeholder = f"[secret:{name}]".replace('"', "'")  # it may come to stand inside JSON
                for form in forms(value):
                    pairs.setdefault(form, placeholder)
        # Longest first: a secret that holds another one goes as a whole.
        self._pairs = sorted(pairs.items(), key=lambda pair: -len(pair[0]))

    def redact(self, text: str) -> str:
        """`text` with every known secret value replaced by `[secret:NAME]`."""
        for form, placeholder in self._pairs:
            if form in text:
                text = text.replace(form, placeholder)
        return text

    def stream(self) -> StreamRedactor:
        """For text that comes in pieces; one for each stream."""
        return StreamRedactor(self, [form for form, _ in self._pairs])


class StreamRedactor:
    """Redacts text that comes in pieces: what may be the beginning of a secret is held back until more is known."""

    def __init__(self, redactor: SecretRedactor, forms: list[str]) -> None:
        self._redactor = redactor
        self._forms = forms
        self._beginnings = {form[:length] for form in forms for length in range(1, len(form))}
        self._longest = max(map(len, forms), default=0)
        self._held = ""

    def feed(self, text: str) -> str:
        """As much of what has come so far as can be shown."""
        text = self._held + text
        safe = self._safe(text)
        self._held = text[safe:]
        return self._redactor.redact(text[:safe])

    def flush(self) -> str:
        """The rest, at the end of the stream."""
        text, self._held = self._held, ""
        return self._redactor.redact(text)

    def _safe(self, text: str) -> int:
        """How many characters neither begin a secret that is not complete yet, nor cut a complete one."""
        first = max(0, len(text) - self._longest + 1)
        safe = next((start for start in range(first, len(text)) if text[start:] in self._beginnings), len(text))
        cuts = safe < len(text)
        while cuts:
            cuts = False
            for form in self._forms:
                start = text.find(form, max(0, safe - len(form) + 1), safe + len(form) - 1)
                if 0 <= start < safe:
                    safe, cuts = start, True
        return safe


def too_short(secrets: Mapping[str, str]) -> list[str]:
    """Names of the secrets that are too short to be redacted, for the doctor to warn about."""
    return [name for name, value in secrets.items() if 0 < len(value) < SHORTEST]


def forms(value: str) -> Iterable[str]:
    """The value plain, as JSON and Python write it, URL-encoded, base64 and hexadecimal, each once."""
    clean = value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    found = [value, json.dumps(clean)[1:-1], json.dumps(clean, ensure_ascii=False)[1:-1], repr(clean)[1:-1]]
    for quoted in (quote(clean, safe=""), quote(clean), quote_plus(clean)):
        found += [quoted, _lower_escapes(quoted)]
    found += base64_forms(clean.encode())
    found += [clean.encode().hex(), clean.encode().hex().upper()]
    return dict.fromkeys(found)


def _lower_escapes(quoted: str) -> str:
    """%2F as %2f, which some programs write."""
    head, *rest = quoted.split("%")
    return head + "".join(f"%{part[:2].lower()}{part[2:]}" for part in rest)


def base64_forms(data: bytes) -> list[str]:
    """What base64 makes of `data` wherever it stands in something longer, such as `user:data`.

    Three alignments are possible; the characters at either end that depend on the neighbours are left off.
    """
    found: list[str] = []
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + data).decode()
        stable = encoded[(before * 8 + 5) // 6 : (before + len(data)) * 8 // 6]
        found += [stable, stable.replace("+", "-").replace("/", "_")]
    return found
