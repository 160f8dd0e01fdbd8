"""Words for search: what is indexed of a text, and what a question asks for.

The index (SQLite FTS5, `porter unicode61`) takes a run of Chinese, Japanese or Korean characters for one word; so runs
are cut into single characters and pairs before they go in and before they are asked for. Porter knows no irregular
verbs: their forms are replaced by the infinitive on both sides. The words that tell nothing are in `words.json`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

APART = 7
"""Characters between the two of a pair that may still be one word with others put in."""
_CJK = r"\u3400-\u9fff\uf900-\ufaff\u3040-\u30ff\uac00-\ud7af"


class Term(Struct, frozen=True):
    """Something a question asks for: `match` as FTS5 takes it; `weak` is a single character out of a longer run.

    `apart` matches a pair whose characters stand near each other (`开会` in `开季度会`). A `loose` pair has a character
    that tells nothing, and is likely no word: where it stands nowhere, nothing is missing.
    """

    text: str
    match: str
    weak: bool = False
    apart: str = ""
    loose: bool = False


class _Table(Struct, frozen=True):
    """`small` words tell nothing, nor do pieces made of `small_characters` alone, nor the `asking` phrases of Chinese,
    Japanese and Korean questions, wherever they stand; `irregular` forms by infinitive."""

    small: str
    small_characters: str
    asking: str
    irregular: Mapping[str, str]


class _Shapes(NamedTuple):
    """Compiled when something is indexed or looked for first, which a start does not pay for."""

    run: re.Pattern[str]
    piece: re.Pattern[str]
    between: re.Pattern[str]


@cache
def _shapes() -> _Shapes:
    return _Shapes(
        run=re.compile(rf"[{_CJK}]+"),
        piece=re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+(?:[-_./:@'][^\W_{_CJK}]+)*"),
        between=re.compile(r"[^\w]|_"),
    )


@cache
def _table() -> _Table:
    return msgspec.json.decode((Path(__file__).parent / "words.json").read_bytes(), type=_Table)


@cache
def _small() -> tuple[frozenset[str], frozenset[str]]:
    return frozenset(_table().small.split()), frozenset(_table().small_characters)


@cache
def _asking() -> re.Pattern[str]:
    phrases = sorted(_table().asking.split(), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, phrases)))


@cache
def _forms() -> Mapping[str, str]:
    return {form: base for base, several in _table().irregular.items() for form in several.split()}


def indexed(text: str) -> str:
    """`text` as it goes into the index."""
    return " ".join(word for piece in _pieces(text) for word in _cut(piece))


def terms(question: str) -> tuple[Term, ...]:
    """What a question asks for, in its order, each once. Nothing of it can be taken for an operator of FTS5."""
    found = _found(question) or _found(question, whole=True)
    words, characters = _small()
    telling = [term for term in found if term.text not in words and not characters.issuperset(term.text)]
    return tuple(telling or found)


def _found(question: str, *, whole: bool = False) -> list[Term]:
    """All terms of a question, each once; `whole`: with the phrases that make it one."""
    return list(dict.fromkeys(term for piece in _pieces(question) for term in _asked(piece, whole=whole)))


def _pieces(text: str) -> Iterator[str]:
    folded = unicodedata.normalize("NFKC", text).casefold().replace("\u2019", "'")
    return (match[0] for match in _shapes().piece.finditer(folded))


def _cut(piece: str) -> Iterator[str]:
    if not piece.isascii() and _shapes().run.fullmatch(piece):
        yield from piece
        yield from _pairs(piece)
    else:
        yield from _parts(piece)


def _asked(piece: str, *, whole: bool) -> Iterator[Term]:
    if _shapes().run.fullmatch(piece):
        parts = [piece] if whole else [part for part in _asking().split(piece) if part]
        yield from (_pair(pair) for part in parts for pair in _pairs(part))
        yield from (Term(char, f'"{char}"', weak=len(part) > 1) for part in parts for char in part)
    elif parts := " ".join(_parts(piece.removesuffix("'s"))):
        yield Term(parts, f'"{parts}"')


def _pair(pair: str) -> Term:
    apart = f'NEAR("{pair[0]}" "{pair[1]}", {APART})' if pair[0] != pair[1] else ""
    return Term(pair, f'"{pair}"', apart=apart, loose=not _small()[1].isdisjoint(pair))


def _parts(piece: str) -> Iterator[str]:
    forms = _forms()
    if piece.isalnum():
        return iter((forms.get(piece, piece),))
    return (forms.get(part, part) for part in _shapes().between.split(piece) if part)


def _pairs(run: str) -> Iterator[str]:
    return (run[place : place + 2] for place in range(len(run) - 1))
