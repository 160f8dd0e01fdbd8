"""Reading a shell script with a real grammar: the simple commands in it, and why more may happen than these.

Sound for deciding that a script does nothing else (`obstacle` is empty), helpful for finding what it does at least.
What runs something else (`env`, `xargs`, `sh -c '…'`, `find -exec`) is there itself, and beside it what it runs.
The grammar is that of bash; where `sh` reads a script differently, there is an obstacle.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

UNREADABLE = "it cannot be read as a shell script"
NO_GRAMMAR = "commands cannot be analysed here: the packages tree-sitter and tree-sitter-bash are missing"
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish"})
TOO_MUCH = "it is too long, or nested too deeply, to be judged"
_DEEPEST, _INNER, _MOST = 5, 40, 500
"""Scripts in scripts, commands that run commands, and commands in all."""
LONGEST = 50_000
"""Characters of a script that is read."""


class Word(Struct, frozen=True):
    """A word with its quotes resolved. Not `literal`: what it becomes is known only when it runs."""

    text: str
    literal: bool = True


class Script(Struct, frozen=True):
    """`commands` are lists of words, none of them empty; `reads` and `writes` the files that input and output are
    redirected to, `assigned` what variables are set to, `inputs` texts that are handed to commands as their input."""

    commands: tuple[tuple[Word, ...], ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    assigned: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    obstacle: str = ""


def read(text: str) -> Script:
    """What a script does."""
    parser = _parser()
    if parser is None:
        return Script(obstacle=NO_GRAMMAR)
    if len(text) > LONGEST or "\0" in text:
        return Script(obstacle=TOO_MUCH)
    reading = _Reading(parser)
    reading.take(text, depth=0)
    return Script(
        tuple(reading.commands),
        tuple(reading.reads),
        tuple(reading.writes),
        tuple(reading.assigned),
        tuple(reading.inputs),
        reading.obstacle,
    )


def name_of(words: Sequence[Word]) -> str:
    """The name of a command without its folder."""
    return words[0].text.rsplit("/", 1)[-1]


@cache
def _parser() -> Parser | None:
    try:
        import tree_sitter_bash  # 30 ms, only when a command is judged
        from tree_sitter import Language, Parser

        return Parser(Language(tree_sitter_bash.language()))
    except (ImportError, OSError, ValueError):
        return None


_STRANGE_SPACE = r"[^\S \t\n]"
_GLUED = r"\S\\\n\S"
_PLAIN_EXPANSION = r"\$\{\w+\}"
_GLOB = r"(?<!\\)[*?\[{~]"
_OBSTACLES = {
    "command_substitution": "it runs a command inside a word",
    "process_substitution": "it runs a command in the place of a file",
    "arithmetic_expansion": "it computes a word",
    "c_style_for_statement": "it computes while it runs",
    "((": "it computes while it runs",
    "subscript": "it uses arrays",
    "ansi_c_string": "it has a string that shells read differently",
    "translated_string": "it has a string that shells read differently",
    "ERROR": UNREADABLE,
}
_READING = ("<", "<&")


class _Reading:
    """Collects what scripts and the scripts within them do."""

    def __init__(self, parser: Parser) -> None:
        self._parser = parser
        self.commands: list[tuple[Word, ...]] = []
        self.reads: list[str] = []
        self.writes: list[str] = []
        self.assigned: list[str] = []
        self.inputs: list[str] = []
        self.obstacle = ""
        self._source = b""
        self._nested = 0

    def take(self, text: str, *, depth: int) -> None:
        if depth > _DEEPEST:
            self._object("it has scripts within scripts within scripts")
            return
        if re.search(_STRANGE_SPACE, text) or re.search(_GLUED, text):
            self._object("it is laid out in a way that shells read differently")
        outer, self._source = self._source, text.encode("utf-8", "replace")
        # The grammar's scanner looks up code points in a table of bytes and reads far beyond it: it is given letters.
        root = self._parser.parse(re.sub(rb"[\x80-\xff]", b"x", self._source)).root_node
        if root.has_error:
            self._object(UNREADABLE)
        for node in _walk(root):
            self._node(node, depth)
        self._source = outer

    def _object(self, why: str) -> None:
        self.obstacle = why if why == TOO_MUCH else self.obstacle or why

    def _text(self, node: Node) -> str:
        return self._source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def _node(self, node: Node, depth: int) -> None:
        kind = node.type
        if kind in _OBSTACLES:
            self._object(_OBSTACLES[kind])
        elif kind == "expansion" and not re.fullmatch(_PLAIN_EXPANSION, self._text(node)):
            self._object("it computes a word")
        elif kind in ("command", "declaration_command", "unset_command", "test_command"):
            self._command(node, depth)
        elif kind == "file_redirect":
            self._redirect(node)
        elif kind == "variable_assignment":
            self.assigned.append(self._text(node).partition("=")[2])
        elif kind in ("heredoc_body", "herestring_redirect"):
            self.inputs.append(self._text(node).removeprefix("<<<").strip().strip("'\""))

    def _command(self, node: Node, depth: int) -> None:
        words: list[Word] = []
        for child in node.children:
            if child.type == "command_name":
                words += [self._word(part) for part in child.children]
            elif child.type not in ("variable_assignment", "file_redirect", "herestring_redirect", "heredoc_redirect"):
                words.append(self._word(child))
        if words:
            self._expand(words, depth)

    def _redirect(self, node: Node) -> None:
        operator = next((child.type for child in node.children if not child.is_named), "")
        if not node.children[-1].is_named:  # `>&-` closes
            return
        target = self._word(node.children[-1])
        if operator in _READING:
            self.reads.append(target.text)
        elif not (operator == ">&" and (target.text.isdecimal() or target.text == "-")):
            self.writes.append(target.text)

    def _expand(self, words: Sequence[Word], depth: int) -> None:
        """The command itself, and what it runs."""
        if len(self.commands) >= _MOST or self._nested >= _INNER:
            self._object(TOO_MUCH)
            return
        self.commands.append(tuple(words))
        self._nested += 1
        self._inner(words, depth)
        self._nested -= 1

    def _inner(self, words: Sequence[Word], depth: int) -> None:
        if not words[0].literal:
            self._object("which command it runs is known only when it runs")
            return
        name = name_of(words)
        if name in SHELLS:
            self._shell(words, depth)
        elif name == "eval":
            self._script(words[1:], depth)
        elif name == "find":
            for inner in _found(words):
                self._expand(inner, depth)
        elif name in _RUNNERS:
            self._runner(name, words[1:], depth)

    def _word(self, node: Node) -> Word:
        text = self._text(node)
        match node.type:
            case "word" | "number" | "variable_name" | "test_operator":
                return Word(re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL), not re.search(_GLOB, text))
            case "raw_string":
                return Word(text[1:-1])
            case "string":
                plain = all(child.type in ('"', "string_content") for child in node.children)
                return Word(re.sub(r'\\([\\"$`\n])', r"\1", text[1:-1]), plain)
            case "ansi_c_string":
                return Word(text[2:-1], literal=False)
            case "concatenation":
                parts = [self._word(child) for child in node.children]
                return Word("".join(part.text for part in parts), all(part.literal for part in parts))
            case _ if node.is_named:
                return Word(text, literal=False)
            case _:
                return Word(text)

    def _shell(self, words: Sequence[Word], depth: int) -> None:
        for place, word in enumerate(words[1:-1], 1):
            if re.fullmatch(r"-[a-z]*c[a-z]*", word.text):
                self._script(words[place + 1 : place + 2], depth)
                return

    def _script(self, words: Sequence[Word], depth: int) -> None:
        if not all(word.literal for word in words):
            self._object("it runs a text that is known only when it runs")
        self.take(" ".join(word.text for word in words), depth=depth + 1)

    def _runner(self, name: str, words: Sequence[Word], depth: int) -> None:
        runner = _RUNNERS[name]
        place, left = 0, runner.operands
        while place < len(words):
            text = words[place].text
            if name == "env" and re.match(r"-\w*S|--split-string", text):
                self._object("it splits a text into a command")
                self.take(" ".join(word.text for word in words[place + 1 :]), depth=depth + 1)
                return
            if text == "--":
                place += 1
                break
            if text.startswith("-") and len(text) > 1:
                place += 2 if text in runner.valued else 1
            elif name in ("env", "sudo") and re.match(r"[A-Za-z_]\w*=", text):
                self.assigned.append(text.partition("=")[2])
                place += 1
            elif left:
                left -= 1
                place += 1
            else:
                break
        if place < len(words):
            self._expand(words[place:], depth)


class _Runner(Struct, frozen=True):
    """A command that runs another one: options that take a value, and how many operands come before the command."""

    valued: frozenset[str] = frozenset()
    operands: int = 0


def _runner(valued: str = "", operands: int = 0) -> _Runner:
    return _Runner(frozenset(valued.split()), operands)


_RUNNERS = {
    "sudo": _runner("-u -g -h -p -C -r -t -T -U -D -R --user --group --host --prompt --chdir --chroot"),
    "doas": _runner("-u -C"),
    "env": _runner("-u -C --unset --chdir"),
    "nohup": _runner(),
    "nice": _runner("-n --adjustment"),
    "ionice": _runner("-c -n --class --classdata"),
    "time": _runner("-f -o --format --output"),
    "timeout": _runner("-s -k --signal --kill-after", 1),
    "stdbuf": _runner("-i -o -e --input --output --error"),
    "setsid": _runner(),
    "command": _runner(),
    "builtin": _runner(),
    "exec": _runner("-a"),
    "busybox": _runner(),
    "toybox": _runner(),
    "xargs": _runner("-I -n -P -L -d -s -a -E --replace --max-args --max-procs --max-lines --delimiter --arg-file"),
    "watch": _runner("-n --interval"),
    "chroot": _runner("", 1),
    "flock": _runner("-w --timeout -E", 1),
    "strace": _runner("-e -o -p"),
    "unshare": _runner(),
    "nsenter": _runner("-t --target"),
}


def _found(words: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """The commands that `find` runs."""
    for place, word in enumerate(words):
        if word.text in ("-exec", "-execdir", "-ok", "-okdir"):
            rest = words[place + 1 :]
            end = next((i for i, one in enumerate(rest) if one.text in (";", "+")), len(rest))
            if end:
                yield rest[:end]


def _walk(root: Node) -> Iterator[Node]:
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack += reversed(node.children)
