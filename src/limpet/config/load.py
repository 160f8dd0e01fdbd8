"""Reads the settings: file, then environment on top. No file at all is a normal case and costs nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from limpet.config import check
from limpet.config.migrate import migrate
from limpet.config.schema import Settings
from limpet.config.table import Key, Table, dotted, put, split_key
from limpet.errors import ConfigError

SHORT_NAMES: Mapping[str, Key] = {
    "LIMPET_MODEL": ("agent", "model"),
    "LIMPET_WORKSPACE": ("agent", "workspace"),
    "LIMPET_TIMEZONE": ("user", "timezone"),
}
"""Variables with a name of their own. All others are `LIMPET_SECTION__KEY`, as in `LIMPET_AGENT__LIMITS__STEPS`."""


MEND = "Correct the file, or move it away: without it all defaults are in force."


class Loaded(msgspec.Struct, frozen=True):
    """Settings with where they came from. `table` is the plain data, unknown keys included."""

    settings: Settings
    path: Path
    exists: bool
    table: Table
    warnings: tuple[str, ...] = ()


def load_settings(path: Path, environ: Mapping[str, str]) -> Loaded:
    """The settings of the file `path` (which may not exist) with `environ` on top.

    Raises `ConfigError` that names file, line and key, or the variable.
    """
    text = read_text(path)
    table = {} if text is None else parse(text, path)
    warnings = [_unknown_warning(path, key) for key in check.unknown_keys(table)] if table else []
    if table and (found := check.faults(table)):
        raise fault_error(found, path=path, text=text or "")
    for name, key in overlay_keys(environ):
        try:
            table = put(table, key, check.from_text(key, _clean(environ[name])))
        except ValueError as error:
            raise ConfigError(f"environment variable {name}: {error}", hint="Correct or unset it.") from None
    warnings += _strange_variables(environ)
    settings = msgspec.convert(table, Settings) if table else Settings()
    if (zone := settings.user.timezone) and not _is_zone(zone):
        warnings.append(f"user.timezone: there is no time zone {zone}; UTC is used (write it like Europe/Lisbon)")
    return Loaded(settings=settings, path=path, exists=text is not None, table=table, warnings=tuple(warnings))


def _clean(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("not UTF-8") from None
    return value


def _is_zone(name: str) -> bool:
    from zoneinfo import ZoneInfo  # only where one is set

    try:
        return bool(ZoneInfo(name).key)
    except (KeyError, ValueError, OSError):
        return False


def read_text(path: Path) -> str | None:
    """The text of `path`, None when there is no such file. Raises `ConfigError` when it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        if os.path.islink(path):
            raise ConfigError(f"{path} is a link to nothing ({os.readlink(path)})") from None
        return None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}, line {line}: not UTF-8", hint=MEND) from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}", hint=MEND) from None


def parse(text: str, path: Path) -> Table:
    """The plain data of version `CURRENT_VERSION`. Raises `ConfigError` that names the line."""
    import tomllib  # only when there is a file

    try:
        return migrate(tomllib.loads(text))
    except RecursionError:
        raise ConfigError(f"{path}: nested too deeply", hint=MEND) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(_syntax_message(str(error), path=path, text=text), hint=MEND) from None
    except ConfigError as error:
        where = f"{path}, line {line_of(text, ('version',)) or 1}: "
        raise ConfigError(where + str(error), hint=error.hint) from None


def _syntax_message(message: str, *, path: Path, text: str) -> str:
    """tomllib says "Invalid value (at line 3, column 9)"; the key is what stands on that line."""
    what, _, place = message.partition(" (at ")
    lines = text.splitlines()
    number = len(lines) if "end of document" in place else int(place.partition("line ")[2].partition(",")[0] or 0)
    line = lines[number - 1] if 0 < number <= len(lines) else ""
    key = line.partition("=")[0].strip() if "=" in line else line.strip()
    return f"{path}, line {number}, {key or 'empty line'}: {what[:1].lower()}{what[1:]}"


def fault_error(found: list[check.Fault], *, path: Path, text: str) -> ConfigError:
    """One error for all the values that do not fit."""
    lines: list[str] = []
    for fault in found:
        number = line_of(text, fault.key)
        where = f", line {number}" if number else ""
        lines.append(f"{path}{where}, {dotted(fault.key)}: {fault.message}")
    return ConfigError("\n".join(lines), hint="Correct it in the file, or with: limpet config set KEY VALUE")


def line_of(text: str, key: Key) -> int:
    """The line (from 1) on which `key`, or the nearest table around it, is written; 0 when it is not found."""
    best, best_depth = 0, 0
    table: Key = ()
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if line.startswith("["):
            table = split_key(line.partition("]")[0].strip("[] "))
            here = table
        elif "=" in line and not line.startswith("#"):
            here = table + split_key(line.partition("=")[0])
        else:
            continue
        if len(here) > best_depth and key[: len(here)] == here:
            best, best_depth = number, len(here)
    return best


def overlay_keys(environ: Mapping[str, str]) -> list[tuple[str, Key]]:
    """(variable, setting) for each variable that overrides a setting, short names first."""
    found = [(name, key) for name, key in SHORT_NAMES.items() if environ.get(name)]
    for name in sorted(environ):
        if name.startswith("LIMPET_") and "__" in name and check.type_of(variable_key(name)) is not None:
            found.append((name, variable_key(name)))
    return found


def variable_key(name: str) -> Key:
    return tuple(part.lower() for part in name.removeprefix("LIMPET_").split("__"))


OTHER_VARIABLES = ("LIMPET_HOME", "LIMPET_CONFIG")


def _strange_variables(environ: Mapping[str, str]) -> list[str]:
    """What is said of variables that look as if they were meant for us."""
    return [*_misspelt(environ), *_no_settings(environ)]


def _misspelt(environ: Mapping[str, str]) -> list[str]:
    known = (*SHORT_NAMES, *OTHER_VARIABLES)
    strange = [name for name in sorted(environ) if name.startswith("LIMPET_") and "__" not in name]
    found: list[str] = []
    for name in strange:
        if name in known:
            continue
        import difflib  # only for mistakes: 5 ms

        if near := difflib.get_close_matches(name, known, n=1, cutoff=0.85):
            found.append(f"environment variable {name}: nothing reads it (did you mean {near[0]}?)")
    return found


def _no_settings(environ: Mapping[str, str]) -> list[str]:
    return [
        f"environment variable {name}: there is no setting {dotted(key)}{_suggest(key)}"
        for name in sorted(environ)
        if name.startswith("LIMPET_") and "__" in name and check.type_of(key := variable_key(name)) is None
    ]


def _unknown_warning(path: Path, key: Key) -> str:
    return f"{path}: there is no setting {dotted(key)}; it is left alone{_suggest(key)}"


def _suggest(key: Key) -> str:
    near = check.nearest(key)
    return f" (did you mean {near}?)" if near else ""
