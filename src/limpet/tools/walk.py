"""Walking a folder by descriptors, without following links and without what ignore files name.

Standard library only: runs in the child process of `search`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress

SKIPPED = frozenset({".git", ".limpet", ".hg", ".svn"})
_IGNORE_FILES = (".gitignore", ".ignore")
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DEEPEST = 60

Rule = tuple[re.Pattern[str], bool, bool]
"""Pattern on the path beneath the ignore file's folder, whether it un-ignores, whether only folders match."""


def walk(
    folder: int, *, within: str = "", prefix: str = "", rules: tuple[tuple[str, list[Rule]], ...] = ()
) -> Iterator[tuple[int, str, str]]:
    """Each regular file beneath the open `folder`, sorted: (open folder it is in, its name, its path).

    `within` (such as `src/`) limits the walk to one folder beneath; ignore files above it count, but do not hide it.
    The descriptor is valid until the next step. `prefix` and `rules` are those of the folders above.
    """
    rules = (*rules, (prefix, read_rules(folder)))
    folders: list[str] = []
    for entry in _listed(folder):
        path = prefix + entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        if len(prefix) < len(within):
            if is_folder and within.startswith(f"{path}/"):
                folders.append(entry.name)
        elif entry.name in SKIPPED or ignored(path, is_folder, rules):
            continue
        elif is_folder:
            folders.append(entry.name)
        elif entry.is_file(follow_symlinks=False):
            yield folder, entry.name, path
    if prefix.count("/") >= _DEEPEST:
        return
    for name in folders:
        try:
            fd = os.open(name, _OPEN, dir_fd=folder)
        except OSError:
            continue
        try:
            yield from walk(fd, within=within, prefix=f"{prefix}{name}/", rules=rules)
        finally:
            os.close(fd)


def _listed(folder: int) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def ignored(path: str, is_folder: bool, rules: tuple[tuple[str, list[Rule]], ...]) -> bool:
    """Whether the deepest, last rule that speaks of `path` ignores it."""
    for base, lines in reversed(rules):
        below = path[len(base) :]
        for pattern, keep, only_folders in reversed(lines):
            if (is_folder or not only_folders) and pattern.fullmatch(below):
                return not keep
    return False


def read_rules(folder: int) -> list[Rule]:
    """The rules of the ignore files in an open folder."""
    rules: list[Rule] = []
    for name in _IGNORE_FILES:
        with suppress(OSError):
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
            with open(fd, "rb") as file:
                lines = file.read(200_000).decode("utf-8", "replace").splitlines()
            rules += [rule for line in lines if (rule := parse_rule(line)) is not None]
    return rules


def parse_rule(line: str) -> Rule | None:
    """One line of an ignore file; None for comments, blanks and what cannot be understood."""
    line = line.rstrip()
    if not line or line.startswith("#"):
        return None
    keep = line.startswith("!")
    line = line[1:] if keep else line
    only_folders = line.endswith("/")
    line = line.rstrip("/")
    anchored = "/" in line
    line = line.removeprefix("/")
    if not line:
        return None
    try:
        return glob_pattern(line if anchored else f"**/{line}"), keep, only_folders
    except re.error:
        return None


def glob_pattern(glob: str, *, ignore_case: bool = False) -> re.Pattern[str]:
    """A glob on a whole path: `*` and `?` stay within a folder, `**` does not, `{a,b}` is either."""
    out: list[str] = []
    place = 0
    depth = 0
    while place < len(glob):
        char = glob[place]
        if glob.startswith("**/", place):
            out.append("(?:[^/]+/)*")
            place += 3
            continue
        if glob.startswith("**", place):
            out.append(".*")
            place += 2
            continue
        if char == "[" and (close := glob.find("]", place + 2)) > 0:
            inner = glob[place + 1 : close].replace("\\", "\\\\")
            out.append(f"[{'^' + inner[1:] if inner[0] in '!^' else inner}]")
            place = close + 1
            continue
        if char == "{" and "}" in glob[place:]:
            depth += 1
            out.append("(?:")
        elif char == "}" and depth:
            depth -= 1
            out.append(")")
        else:
            out.append({"*": "[^/]*", "?": "[^/]", ",": "|" if depth else ","}.get(char, re.escape(char)))
        place += 1
    return re.compile("".join(out) + ")" * depth, re.IGNORECASE | re.DOTALL if ignore_case else re.DOTALL)
