"""Migrations of the file: pure, in order, and the old file is kept."""

from __future__ import annotations

import pytest

from limpet.config.migrate import MIGRATIONS, Migration, migrate, version_of
from limpet.config.schema import CURRENT_VERSION
from limpet.config.table import Table
from limpet.errors import ConfigError


def rename(table: Table) -> Table:
    return {("new" if key == "old" else key): value for key, value in table.items()}


def double(table: Table) -> Table:
    value = table["new"]
    assert isinstance(value, int)
    return {**table, "new": value * 2}


STEPS: dict[int, Migration] = {1: rename, 2: double}


def test_there_is_a_migration_for_each_version() -> None:
    assert sorted(MIGRATIONS) == list(range(1, CURRENT_VERSION))


def test_each_step_runs_once_in_order_and_the_input_stays() -> None:
    table: Table = {"old": 4}
    assert migrate(table, migrations=STEPS, current=3) == {"new": 8, "version": 3}
    assert migrate({"new": 4, "version": 2}, migrations=STEPS, current=3) == {"new": 8, "version": 3}
    assert table == {"old": 4}


def test_the_current_version_is_left_as_it_is() -> None:
    table: Table = {"version": CURRENT_VERSION, "x": 1}
    assert migrate(table) is table


def test_a_newer_version_is_refused() -> None:
    with pytest.raises(ConfigError, match="newer Limpet"):
        migrate({"version": CURRENT_VERSION + 1})


@pytest.mark.parametrize("version", ["1", 0, True, 1.0])
def test_a_version_is_a_whole_number(version: object) -> None:
    with pytest.raises(ConfigError, match="whole number"):
        version_of({"version": version})
