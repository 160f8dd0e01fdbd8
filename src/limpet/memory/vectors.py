"""Vectors of passages, kept by the hash of their text and the model that made them, and compared by `sqlite-vec`."""

from __future__ import annotations

import importlib
from array import array
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from math import sqrt

import apsw
from msgspec import convert

from limpet.memory.index import Index, embedded

LONGEST = 4_000
"""Characters of a text whose vector is made."""


def is_available() -> bool:
    """Whether vectors can be compared here (the extra `vectors`)."""
    return find_spec("sqlite_vec") is not None


def load(index: Index) -> bool:
    """Make `nearest` work on this connection; False where that cannot be done."""
    try:
        path = str(importlib.import_module("sqlite_vec").loadable_path())
        index.database.enable_load_extension(True)
        try:
            index.database.load_extension(path)
        finally:
            index.database.enable_load_extension(False)
    except (ImportError, OSError, AttributeError, apsw.Error):
        return False
    return True


def packed(vector: Sequence[float]) -> bytes:
    """The unit vector as `sqlite-vec` takes it: 32-bit floats."""
    length = sqrt(sum(value * value for value in vector)) or 1.0
    return array("f", (value / length for value in vector)).tobytes()


def missing(index: Index, model: str, *, limit: int) -> list[tuple[str, str]]:
    """(hash, text) of passages that have no vector of `model` yet, the newest first."""
    rows = index.connection.execute(
        "SELECT p.hash, p.id FROM passages AS p LEFT JOIN vectors AS v ON v.hash = p.hash AND v.model = ?"
        " WHERE v.hash IS NULL GROUP BY p.hash ORDER BY p.id DESC LIMIT ?",
        (model, limit),
    )
    names = {number: hash for hash, number in convert(rows.fetchall(), list[tuple[str, int]])}
    return [(names[name], embedded(passage)[:LONGEST]) for name, passage in index.passages(names).items()]


def keep(index: Index, model: str, vectors: Mapping[str, Sequence[float]]) -> None:
    """Keep vectors by the hash of their text."""
    with index.writing() as connection:
        for hash, vector in vectors.items():
            connection.execute("REPLACE INTO vectors VALUES (?, ?, ?)", (hash, model, packed(vector)))


def cosines(index: Index, model: str, vector: Sequence[float]) -> dict[int, float]:
    """How near each passage is to `vector`; those with vectors of another model or another length are left out."""
    data = packed(vector)
    rows = index.connection.execute(
        "SELECT p.id, 1 - vec_distance_cosine(v.data, ?1) FROM vectors AS v JOIN passages AS p ON p.hash = v.hash"
        " WHERE v.model = ?2 AND length(v.data) = length(?1)",
        (data, model),
    )
    return {number: near for number, near in convert(rows.fetchall(), list[tuple[int, float | None]]) if near}


def count(index: Index, model: str) -> int:
    """How many vectors of `model` there are."""
    row = index.connection.execute("SELECT COUNT(*) FROM vectors WHERE model = ?", (model,)).fetchone()
    return convert(row, tuple[int])[0]
