"""Secrets: references instead of values in the file, and known values kept out of all that leaves the process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from limpet.config import disguise
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
            named = is_secret_name(key[-1]) or key[-2:-1] in (("secrets",), ("targets",))
            if isinstance(one, str) and one and (named or is_reference(one)):
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


def store_fault(root: Path) -> str:
    """Why the secrets of the store cannot be known, and so are not kept out of what leaves; empty when they can."""
    if not (root / STORE).exists():
        return ""
    try:
        _vault(root).known()
    except ConfigError as error:
        return f"The stored secrets cannot be read, so they are not hidden from models and logs. {error.present()}"
    return ""


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


class Span(Struct, frozen=True, order=True):
    """Where a secret stands in a text, and what comes in its place."""

    start: int
    end: int
    placeholder: str


class SecretRedactor:
    """The `Redactor` port: replaces known values, in every form in which they usually appear."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._forms: dict[str, str] = {}
        self._needles: dict[str, str] = {}
        for name, value in secrets.items():
            if len(value) >= SHORTEST:
                placeholder = f"[secret:{name}]".replace('"', "'")  # it may come to stand inside JSON
                for form in disguise.forms(value):
                    self._forms.setdefault(form, placeholder)
                for needle in disguise.needles(value):
                    if len(needle) >= SHORTEST:
                        self._needles.setdefault(needle, placeholder)

    def redact(self, text: str) -> str:
        """`text` with every known secret value replaced by `[secret:NAME]`."""
        return replaced(text, self.spans(text))

    def spans(self, text: str) -> list[Span]:
        """Where secrets stand in `text`, in order; those that overlap are one, named by the longest."""
        found = list(_occurrences(text, self._forms))
        if disguise.escapes(text):
            found += self._escaped(text)
        if len(text) > SHORTEST and "\n" in text:  # tools wrap at any width
            found += self._wrapped(text)
        return _merged(found) if found else []

    def stream(self) -> StreamRedactor:
        """For text that comes in pieces; one for each stream."""
        return StreamRedactor(self, self._forms, self._needles)

    def _escaped(self, text: str) -> Iterator[Span]:
        """In any mixture of escaped and plain characters."""
        shown = text
        for depth in range(1, disguise.LAYERS + 1):
            below = disguise.unescaped(shown)
            if below == shown:
                return
            if any(needle in below for needle in self._needles):
                places = disguise.origins_below(text, depth)
                yield from (_moved(span, places) for span in _occurrences(below, self._needles))
            shown = below

    def _wrapped(self, text: str) -> Iterator[Span]:
        """In lines, as `base64` writes them."""
        joined = disguise.without_breaks(text)
        if any(form in joined and form not in text for form in self._forms):
            _, places = disguise.unwrapped(text)
            yield from (_moved(span, places) for span in _occurrences(joined, self._forms))


def replaced(text: str, spans: Iterable[Span]) -> str:
    """`text` with each of `spans`, which are in order, replaced."""
    pieces: list[str] = []
    done = 0
    for span in spans:
        pieces += [text[done : span.start], span.placeholder]
        done = span.end
    return "".join([*pieces, text[done:]]) if pieces else text


def _occurrences(text: str, wanted: Mapping[str, str]) -> Iterator[Span]:
    for form, placeholder in wanted.items():
        start = text.find(form)
        while start >= 0:
            yield Span(start, start + len(form), placeholder)
            start = text.find(form, start + 1)


def _moved(span: Span, places: Sequence[int]) -> Span:
    return Span(places[span.start], places[span.end], span.placeholder)


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    longest = 0
    for span in sorted(spans):
        length = span.end - span.start
        if not merged or span.start >= merged[-1].end:
            merged.append(span)
            longest = length
            continue
        last = merged[-1]
        name = span.placeholder if length > longest else last.placeholder
        longest = max(longest, length)
        merged[-1] = Span(last.start, max(last.end, span.end), name)
    return merged


class StreamRedactor:
    """Redacts text that comes in pieces: what may be the beginning of a secret is held back until more is known."""

    def __init__(self, redactor: SecretRedactor, forms: Iterable[str], needles: Iterable[str]) -> None:
        self._redactor = redactor
        self._plain = _Beginnings(forms)
        self._escaped = _Beginnings(needles)
        self._held = ""

    def feed(self, text: str) -> str:
        """As much of what has come so far as can be shown."""
        text = self._held + text
        spans = self._redactor.spans(text)
        safe = self._safe(text, spans)
        self._held = text[safe:]
        return replaced(text[:safe], (span for span in spans if span.end <= safe))

    def flush(self) -> str:
        """The rest, at the end of the stream."""
        text, self._held = self._held, ""
        return self._redactor.redact(text)

    def _safe(self, text: str, spans: list[Span]) -> int:
        """How many characters neither begin a secret that is not complete yet, nor cut a complete one."""
        safe = self._plain.place(text)
        if disguise.escapes(text):
            safe = min(safe, self._in_layers(text))
        return next((span.start for span in spans if span.start < safe < span.end), safe)

    def _in_layers(self, text: str) -> int:
        safe = len(text)
        places: Sequence[int] = range(len(text) + 1)
        shown = text
        for _ in range(disguise.LAYERS):
            cut = disguise.unfinished(shown)
            safe = min(safe, places[cut])
            shown, inner = disguise.origins(shown[:cut])
            places = [places[place] for place in inner]
            safe = min(safe, places[self._escaped.place(shown)])
        return safe


class _Beginnings:
    """Recognises what may become one of `words`."""

    def __init__(self, words: Iterable[str]) -> None:
        known = list(words)
        self._known = {word[:length] for word in known for length in range(1, len(word))}
        self._longest = max(map(len, known), default=0)

    def place(self, text: str) -> int:
        """Where in `text` the longest end of it stands that begins a word; its length where none does."""
        first = max(0, len(text) - self._longest + 1)
        return next((start for start in range(first, len(text)) if text[start:] in self._known), len(text))


def too_short(secrets: Mapping[str, str]) -> list[str]:
    """Names of the secrets that are too short to be redacted, for the doctor to warn about."""
    return [name for name, value in secrets.items() if 0 < len(value) < SHORTEST]
