"""Damage in arguments that can be mended without a guess, as an ordered list of texts to read strictly."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from limpet.llm.arguments import CUT_OFF, SEVERAL, UNREADABLE
from limpet.llm.unicode import clean_json

_FENCE = re.compile(r"\s*```[a-zA-Z0-9]*[ \t]*\n(.*)\n?[ \t]*```\s*", re.S)
_THINK = re.compile(r"\s*<think(?:ing)?>.*?</think(?:ing)?>\s*(?=\{)", re.S)
_TOKEN = re.compile(r"""\s+|//[^\n]*|/\*.*?\*/|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[{}\[\],:]|[^\s{}\[\],:"']+""", re.S)
_WORDS = {"True": "true", "False": "false", "None": "null"}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SINGLE = re.compile(r"(?:[^\\\n]|\\[\\'nt])*")
_ESCAPE_OR_CONTROL = re.compile(r"\\.|[\x00-\x1f]", re.S)


def candidates(text: str, *, ended: bool) -> Iterator[str]:
    """What to try when `text` itself is no JSON. `ended`: the stream came to its regular end."""
    fenced = _FENCE.fullmatch(text)
    bare = fenced[1] if fenced else text
    bare = _THINK.sub("", bare, count=1) if _THINK.match(bare) else bare
    if bare is not text:
        yield bare
    if ended and (lone := _alone(bare)) is not None:
        yield lone
    if (loose := _raw_control(bare)) is not None:
        yield loose
    if (repaired := _repair(bare, ended=ended)) is not None:
        yield repaired


def _raw_control(text: str) -> str | None:
    """Raw newlines and tabs inside strings."""
    try:
        value: object = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return clean_json(value)


def _repair(text: str, *, ended: bool) -> str | None:
    """Comments, trailing commas, Python literals and quotes, bare keys, closers too many or one too few at the end."""
    tokens = _tokens(text)
    if not tokens or tokens[0] != "{":
        return None
    out: list[str] = []
    depth = 0
    for at, token in enumerate(tokens):
        if depth == 0 and at:
            if token in "}]":
                continue  # a closer too many after the whole object
            return None
        following = tokens[at + 1] if at + 1 < len(tokens) else ""
        if token == "," and following in ("}", "]"):
            continue
        depth += (token in "{[") - (token in "}]")
        plain = _plain(token, is_key=following == ":" and bool(out) and out[-1] in ("{", ","))
        if plain is None:
            return None
        out.append(plain)
    if depth == 1 and ended and (out[-1][-1] in '"]}' or out[-1] in ("true", "false", "null")) and _closes(out):
        out.append("}")
        depth = 0
    return "".join(out) if depth == 0 else None


def _alone(text: str) -> str | None:
    """The one object in a sentence that has no other bracket or quote."""
    start, end = text.find("{"), text.rfind("}") + 1
    if start < 0 or (start == 0 and end == len(text)):
        return None
    around = text[:start] + text[end:]
    return text[start:end] if not set(around) & set('{}[]"`<') else None


def _closes(out: list[str]) -> bool:
    """Whether a brace may follow: the last token ends a value, not a key."""
    return len(out) >= 2 and (out[-1] in ("}", "]") or out[-2] == ":")


def _tokens(text: str) -> list[str]:
    """The tokens of `text` without white space; none when a part of it is no token (an open string)."""
    tokens: list[str] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return []
        if not match[0].isspace() and not match[0].startswith(("//", "/*")):
            tokens.append(match[0])
        at = match.end()
    return tokens


def _plain(token: str, *, is_key: bool) -> str | None:
    if token[0] == "'":
        body = token[1:-1]
        if _SINGLE.fullmatch(body) is None:
            return None
        return json.dumps(re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), body))
    if token[0] == '"':
        return _ESCAPE_OR_CONTROL.sub(lambda match: match[0] if match[0][0] == "\\" else _escaped(match[0]), token)
    if is_key and _NAME.fullmatch(token):
        return f'"{token}"'
    return _WORDS.get(token, token)


def _escaped(control: str) -> str:
    return f"\\u{ord(control):04x}"


def fault_of(text: str) -> str:
    """What is wrong with a text that no candidate could be read of."""
    try:
        _, end = json.JSONDecoder(strict=False).raw_decode(text.strip())
    except (ValueError, RecursionError):
        tokens = _tokens(text)
        opened = sum(token in "{[" for token in tokens) - sum(token in "}]" for token in tokens)
        return CUT_OFF if text.lstrip()[:1] == "{" and (not tokens or opened > 0) else UNREADABLE
    return SEVERAL if text.strip()[end:].lstrip()[:1] in ("{", "[", '"') else UNREADABLE
