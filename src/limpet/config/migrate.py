"""Migrations of `config.toml`: each takes the data of one version and gives that of the next, and does nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from limpet.config.schema import CURRENT_VERSION
from limpet.config.table import Table
from limpet.errors import ConfigError

Migration = Callable[[Table], Table]

MIGRATIONS: Mapping[int, Migration] = {}
"""`MIGRATIONS[n]` turns version n into n + 1. Version 1 is the first, so there is none yet."""


def version_of(table: Table) -> int:
    """A file without `version` is of version 1. Raises `ConfigError` when it is no whole number from 1."""
    version = table.get("version", 1)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ConfigError(f"version: expected a whole number from 1, got {version!r}")
    return version


def migrate(table: Table, *, migrations: Mapping[int, Migration] = MIGRATIONS, current: int = CURRENT_VERSION) -> Table:
    """The data as of version `current`; `table` is left as it was.

    Raises `ConfigError` when a newer Limpet wrote it.
    """
    version = version_of(table)
    if version > current:
        raise ConfigError(
            f"version {version} was written by a newer Limpet; this one knows versions up to {current}",
            hint="Upgrade Limpet, or put back the copy that was made before the upgrade.",
        )
    while version < current:
        table = {**migrations[version](dict(table)), "version": version + 1}
        version += 1
    return table
