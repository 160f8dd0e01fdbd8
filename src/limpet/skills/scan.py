"""What stands in the files of a skill that a skill has no need of: a static scan, before anything is installed.

It finds what is plain to see, not what somebody hides with care; so nothing of a skill runs by itself either way. A
`danger` puts the skill in quarantine, a `warning` needs the owner's yes.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Iterator

from msgspec import Struct

from limpet.skills.discovery import read_file
from limpet.skills.scan_rules import Level, rules
from limpet.skills.skill import Needs
from limpet.toolkit.unseen import hidden_in

MOST_FILES = 500
"""Files of one skill that are looked at, and may be installed."""
_LONGEST_LINE = 20_000
_LONG_BLOB = 400
_PICTURES = (b"\x89PNG", b"\xff\xd8", b"GIF8", b"RIFF")
_PROGRAMS = (b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
_ACTS = re.compile(r"\b(?:curl|wget|(?:ba|z)?sh|python[0-9]*|powershell)\b|https?://", re.IGNORECASE)


class Finding(Struct, frozen=True):
    """`path` is relative to the skill, `line` from 1 (0 = the file as a whole)."""

    level: Level
    path: str
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.level}: {self.path}{f':{self.line}' if self.line else ''}: {self.text} [{self.rule}]"


class Summary(Struct, frozen=True):
    """What a skill could do: hosts that its files name, programs and secrets it asks for, its scripts and tools."""

    files: int
    size: int
    scripts: tuple[str, ...]
    hosts: tuple[str, ...]
    needs: Needs
    tools: tuple[str, ...] = ()


def scan(folder: str) -> list[Finding]:
    """What is found in the files of `folder`, the worst first. Raises `OSError` when it cannot be read."""
    findings: list[Finding] = []
    for count, (name, path) in enumerate(_files(folder)):
        if count >= MOST_FILES:
            findings.append(Finding("danger", name, 0, "too-much", f"there are over {MOST_FILES} files"))
            break
        findings += _file(name, path, folder)
    return sorted(dict.fromkeys(findings), key=lambda one: (one.level, one.path, one.line))


def summarise(folder: str, needs: Needs, tools: tuple[str, ...] = ()) -> Summary:
    """What the skill in `folder` could do."""
    size, scripts, hosts = 0, list[str](), dict[str, None]()
    files = list(_files(folder))
    for name, path in files:
        if os.path.islink(path):
            continue
        size += os.path.getsize(path)
        data = _read(path, folder)
        if data.startswith(b"#!") or name.endswith((".py", ".sh", ".js", ".mjs", ".rb", ".pl", ".ps1", ".ts")):
            scripts.append(name)
        for host in re.findall(r"https?://((?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,})", data.decode("utf-8", "replace")):
            hosts[str(host).lower()] = None
    return Summary(len(files), size, tuple(scripts), tuple(hosts), needs, tools)


def _files(folder: str) -> Iterator[tuple[str, str]]:
    for place, folders, names in os.walk(folder):
        folders.sort()
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        for name in sorted((*names, *links)):
            path = os.path.join(place, name)
            yield os.path.relpath(path, folder), path


def _file(name: str, path: str, folder: str) -> Iterator[Finding]:
    if os.path.islink(path):
        yield Finding("danger", name, 0, "link", f"is a link to {os.readlink(path)}")
        return
    if hidden := hidden_in(name):
        yield Finding("danger", name, 0, "unseen", f"its name holds characters that nobody sees: {', '.join(hidden)}")
    data = _read(path, folder)
    if not data and os.path.getsize(path):
        yield Finding("warning", name, 0, "unread", "cannot be looked at: too large, or no plain file")
    elif b"\0" in data[:8_000] and not data.startswith(_PICTURES):
        program = data.startswith(_PROGRAMS)
        yield Finding(
            "danger" if program else "warning", name, 0, "binary", f"is {'a program' if program else 'no text'}"
        )
    else:
        yield from text_findings(name, data.decode("utf-8", "replace"))


def text_findings(name: str, text: str) -> Iterator[Finding]:
    """What is found in one text."""
    if hidden := hidden_in(text.removeprefix("\ufeff")):
        shown = ", ".join(f"{code} ({count} times)" for code, count in list(hidden.items())[:4])
        yield Finding("danger", name, 0, "unseen", f"holds characters that nobody sees: {shown}")
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if len(line) > _LONGEST_LINE:
            yield Finding("warning", name, number, "long-line", f"has {len(line):,} characters in one line")
        for level, rule, said in _line(_joined(lines, number)[:_LONGEST_LINE]):
            yield Finding(level, name, number, rule, said)


def _joined(lines: list[str], number: int) -> str:
    """A line with those that a backslash or a pipe at its end goes on with."""
    text = lines[number - 1]
    for following in lines[number : number + 4]:
        if not text.rstrip().endswith(("\\", "|", "&&")):
            break
        text = f"{text.rstrip().removesuffix(chr(92))} {following.strip()}"
    return text


def _line(line: str) -> Iterator[tuple[Level, str, str]]:
    """Level, rule and words of each finding. Backslashes that a shell would drop are dropped for a second look."""
    plain = line.replace("\\", "")
    for rule in rules():
        if found := rule.search(line) or (rule.search(plain) if plain != line else ""):
            yield rule.level, rule.name, f"{rule.why}: {found[:80]!r}"
    for blob in re.findall(r"[A-Za-z0-9+/]{40,}={0,2}", line):
        yield from _blob(str(blob))
    if re.search(r"(?:\\x[0-9a-fA-F]{2}){16,}|(?:\\u[0-9a-fA-F]{4}){12,}", line):
        yield "warning", "disguise", "writes a text in codes"


def _blob(blob: str) -> Iterator[tuple[Level, str, str]]:
    """What a text in base64 says; a long one that is no text is told as well."""
    try:
        data = base64.b64decode(blob + "=" * (-len(blob) % 4), validate=True)
    except (binascii.Error, ValueError):
        return
    text = data.decode("utf-8", "replace")
    printable = sum(character.isprintable() or character in "\n\t" for character in text) > 0.95 * len(text)
    if not printable or "\ufffd" in text:
        if len(blob) > _LONG_BLOB:
            yield "warning", "base64", f"holds {len(data):,} bytes in base64"
    elif any(rule.search(text) for rule in rules()) or _ACTS.search(text):
        yield "danger", "base64", f"hides {text[:60]!r} in base64"


def _read(path: str, folder: str) -> bytes:
    try:
        return read_file(path, root=folder)
    except OSError:
        return b""
