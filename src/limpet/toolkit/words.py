"""Words for a full-text index: runs of Chinese, Japanese and Korean characters become single characters and pairs.

An index by spaces finds nothing in these scripts. Index and query have to use the same words (DESIGN 8).
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache


@cache
def _run() -> re.Pattern[str]:
    return re.compile(
        "[\u1100-\u11ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
        "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
    )


def indexed(text: str) -> str:
    """`text` as it goes into an index of words."""
    if text.isascii():
        return text
    return _run().sub(lambda found: f" {' '.join(_parts(found[0], singles=True))} ", _folded(text))


def query(words: str, *, every: bool = True) -> str:
    """An FTS5 query for what people typed, none of which is its syntax: `every` word, or any. Empty: nothing to find.

    A run of such characters is found where all its pairs are; a single one by itself.
    """
    found: list[str] = []
    for word in _folded(words).split():
        spaced = _run().sub(lambda run: f" {' '.join(_parts(run[0], singles=False))} ", word)
        found += [part for part in spaced.split() if any(character.isalnum() for character in part)]
    quoted = ['"' + part.replace('"', '""').replace("\0", "") + '"' for part in dict.fromkeys(found)]
    return (" AND " if every else " OR ").join(quoted)


def _folded(text: str) -> str:
    """Full-width letters and the like as the usual ones."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def _parts(run: str, *, singles: bool) -> list[str]:
    pairs = [run[place : place + 2] for place in range(len(run) - 1)]
    return [*run, *pairs] if singles or not pairs else pairs
