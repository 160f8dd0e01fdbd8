"""Changes `config.toml`: comments, order and unknown keys stay, and a crash leaves the old file or the new one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from limpet.config import check
from limpet.config.load import parse, read_text
from limpet.config.migrate import version_of
from limpet.config.schema import CURRENT_VERSION
from limpet.config.table import Key, Table, dotted, is_table, look_up, put
from limpet.errors import ConfigError

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

HEAD = "# Settings of Limpet. `limpet config set KEY VALUE` keeps what you write here; docs/config.md lists all keys.\n"


def set_value(path: Path, key: Key, text: str) -> object:
    """Write `text` as the value of the setting `key`; gives the value. Raises `ConfigError`, then nothing changed."""
    if check.type_of(key) is None:
        near = check.nearest(key)
        raise ConfigError(
            f"There is no setting {dotted(key)}.", hint=f"Did you mean {near}?" if near else "See docs/config.md."
        )
    try:
        value = check.from_text(key, text)
    except ValueError as error:
        raise ConfigError(f"{dotted(key)}: {error}") from None
    set_values(path, {key: value})
    return value


def set_values(path: Path, values: dict[Key, object], *, comments: Mapping[Key, str] = MappingProxyType({})) -> None:
    """Write several values at once. Raises `ConfigError` for one that does not fit, then nothing changed.

    `comments` stand beside values that are new; what is written there already stays.
    """
    for key, value in values.items():
        for fault in check.faults(put({}, key, value)):
            raise ConfigError(f"{dotted(fault.key)}: {fault.message}")
    document = _document(path)
    for key, value in values.items():
        _put(document, key, value, comment=comments.get(key, ""))
    _write_document(path, document)


def unset_value(path: Path, key: Key) -> bool:
    """Take `key` out of the file, so that the default counts again; whether it was there. Empty tables go too."""
    document = _document(path)
    if look_up(document, key) is None:
        return False
    for depth in range(len(key), 0, -1):
        table = look_up(document, key[: depth - 1]) if depth > 1 else document
        if is_table(table) and (depth == len(key) or not table[key[depth - 1]]):
            del table[key[depth - 1]]
    _write_document(path, document)
    return True


def _document(path: Path) -> TOMLDocument:
    """The file with its comments, migrated to the current version; a copy is made before that."""
    import tomlkit  # for writing only: 60 ms

    text = read_text(path)
    if text is None:
        document = tomlkit.parse(HEAD)
        document["version"] = CURRENT_VERSION
        return document
    new = parse(text, path)  # says what is wrong in our words
    document = tomlkit.parse(text)
    old_version = version_of(document)
    if old_version < CURRENT_VERSION:
        write_atomically(path.with_name(f"{path.name}.v{old_version}"), text)
        merge(document, new)
    return document


def merge(document: Table, new: Table) -> None:
    """Bring `document` to the data of `new`, touching only what differs, so that comments elsewhere stay."""
    for name in [name for name in document if name not in new]:
        del document[name]
    for name, value in new.items():
        old = document.get(name)
        if is_table(old) and is_table(value):
            merge(old, value)
        elif name not in document or old != value:
            document[name] = value


def _put(document: Table, key: Key, value: object, *, comment: str = "") -> None:
    import tomlkit

    table = document
    for part in key[:-1]:
        below = table.get(part)
        if not is_table(below):
            table[part] = tomlkit.table()
            below = table[part]
        if not is_table(below):
            raise ConfigError(f"{dotted(key)}: {part} is not a table")
        table = below
    if comment and key[-1] not in table:
        table[key[-1]] = tomlkit.item(value).comment(comment)  # pyright: ignore[reportUnknownMemberType]
    else:
        table[key[-1]] = value


def _write_document(path: Path, document: TOMLDocument) -> None:
    import tomlkit

    text = tomlkit.dumps(document)  # pyright: ignore[reportUnknownMemberType]
    parse(text, path)
    write_atomically(path, text)


def write_atomically(path: Path, text: str) -> None:
    """Replace `path` (or what it links to) by a file of mode 0600 with `text`. Raises `ConfigError`."""
    target = Path(os.path.realpath(path))
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with open(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from None
