"""Commands that always ask, sandbox or not (FEATURES F14).

A net, not a wall: it reads a command roughly the way a shell would and looks at the name and arguments of each
simple command in it. The wall is the sandbox. What merely looks alike (`tool --format json`) is left alone.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from functools import cache

_SPLIT = r"\|\|?|&&?|;|\n|\$\(|`|[(){}]"
_ASSIGNMENT = r"[A-Za-z_]\w*="
_BOMB = r"([\w:.-]+)\s*\(\)\s*\{[^}]*\1\s*\|\s*\1"
_DEVICE = r"/dev/(sd|hd|vd|xvd|nvme|mmcblk|disk|mapper/|dm-|md|loop)\w*"
_PREFIXES = frozenset(
    {
        "sudo",
        "doas",
        "env",
        "nohup",
        "nice",
        "ionice",
        "time",
        "timeout",
        "stdbuf",
        "setsid",
        "command",
        "exec",
        "builtin",
        "busybox",
        "xargs",
        "then",
        "else",
        "do",
        "if",
        "while",
        "until",
        "!",
        "watch",
        "chroot",
    }
)
_PUNCTUATION = frozenset("();<>|&`")
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish"})
_REBUILT = frozenset(
    {
        "node_modules",
        "build",
        "dist",
        "out",
        "target",
        "coverage",
        "tmp",
        "temp",
        ".tmp",
        ".cache",
        ".venv",
        "venv",
        "__pycache__",
        ".pytest_cache",
        ".ruff_cache",
        ".mypy_cache",
        ".tox",
        ".next",
        ".gradle",
    }
)


@cache
def _secret() -> re.Pattern[str]:
    return re.compile(
        r"(?:^|[/~\s'\"=:])("
        r"\.ssh(?:/|$)|id_(?:rsa|dsa|ecdsa|ed25519)$|\.aws/(?:credentials|config)|\.netrc$|\.pgpass$|\.gnupg(?:/|$)"
        r"|\.git-credentials$|\.docker/config\.json|\.kube/config|\.pypirc$|\.config/gcloud(?:/|$)|\.config/gh/hosts\.yml"
        r"|\.azure(?:/|$)|\.password-store(?:/|$)|\.env(?:\.(?:local|production|development|staging))?$"
        r"|/?etc/g?shadow-?$|/?etc/sudoers|[\w.-]+\.(?:pem|p12|pfx|kdbx)$"
        r")"
    )


def secret_file(path: str) -> str:
    """The part of `path` that names a credential file, empty when none does."""
    found = _secret().search(path)
    return found.group(1) if found else ""


def danger(command: str) -> str:
    """Why the owner is asked before `command` runs; empty when there is no such reason."""
    if re.search(_BOMB, command):
        return "a fork bomb"
    for words in _simple_commands(command, depth=0):
        found = _judge(words)
        if found:
            return found
    return ""


def _simple_commands(command: str, *, depth: int) -> Iterator[list[str]]:
    """The words of each simple command, also of those in `sh -c '…'`; redirections stay words."""
    for part in _parts(command):
        words = _strip(part)
        if not words:
            continue
        yield words
        if depth < 3 and (words[0] in _SHELLS or words[0] == "eval"):
            for text in words[1:]:
                if " " in text or words[0] == "eval":
                    yield from _simple_commands(text, depth=depth + 1)


def _parts(command: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars="();<>|&`")
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    try:
        for word in lexer:
            if _separates(word):
                yield words
                words = []
            else:
                words.append(word)
                if "$(" in word or "`" in word:  # inside double quotes
                    yield re.sub(_SPLIT, " ", word).split()
    except ValueError:  # an open quote: split roughly
        for piece in re.split(_SPLIT, command):
            yield piece.split()
        return
    yield words


def _separates(word: str) -> bool:
    """Whether a new simple command begins after `word`. `>&` does not separate, `<(` does."""
    if set(word) <= _PUNCTUATION:
        return bool(set(word) & set("()|;`")) or word in ("&", "&&")
    return word in ("{", "}")


def _strip(words: list[str]) -> list[str]:
    """Without assignments and commands that run another one; the name without its folder."""
    while words:
        name = words[0].rsplit("/", 1)[-1].lstrip("$")
        if re.match(_ASSIGNMENT, words[0]) or not name:
            words = words[1:]
        elif name in _PREFIXES:
            words = _after_prefix(words[1:])
        else:
            return [name, *words[1:]]
    return []


def _after_prefix(words: list[str]) -> list[str]:
    """What a command such as `sudo` or `xargs` runs. Where its options may have values, the first word we know."""
    plain = 0
    while plain < len(words) and (
        words[plain].startswith("-") or words[plain].rstrip("smhd").replace(".", "").isdigit()
    ):
        plain += 1
    if plain:
        for place in range(plain, len(words)):
            name = words[place].rsplit("/", 1)[-1]
            if name in _RULES or name in _SHELLS or name in _PREFIXES or name.startswith("mkfs"):
                return words[place:]
    return words[plain:]


def _judge(words: list[str]) -> str:
    name, arguments = words[0], words[1:]
    for place, word in enumerate(words):
        if word in (">", ">>", ">|") and re.match(_DEVICE, "".join(words[place + 1 : place + 2])):
            return "it writes to a disk device"
        found = secret_file(word)
        if found:
            return f"it touches {found}, which holds credentials"
    if name.startswith(("mkfs", "newfs")) or name in (
        "wipefs",
        "fdisk",
        "sfdisk",
        "cfdisk",
        "parted",
        "mkswap",
        "diskpart",
        "blkdiscard",
    ):
        return "it formats or partitions a disk"
    if name == "format" and any(re.fullmatch(r"[A-Za-z]:\\?", word) for word in arguments):
        return "it formats a disk"
    rule = _RULES.get(name)
    return rule(arguments) if rule else ""


def _remove(arguments: list[str]) -> str:
    flags = "".join(word.lstrip("-") for word in arguments if word.startswith("-") and not word.startswith("--"))
    deep = "r" in flags.lower() or "--recursive" in arguments or "--no-preserve-root" in arguments
    if not deep:
        return ""
    for target in (word for word in arguments if not word.startswith("-")):
        clean = target.rstrip("/")
        if clean.startswith("./"):
            clean = clean[2:]
        if clean.startswith("/tmp/") or (
            clean.rsplit("/", 1)[-1] in _REBUILT and not clean.startswith(("/", "~", "$", ".."))
        ):
            continue
        return f"it deletes a whole tree ({target})"
    return ""


def _dd(arguments: list[str]) -> str:
    return (
        "it writes to a device" if any(re.match(r"of=/dev/(?!null|stdout|stderr)", word) for word in arguments) else ""
    )


def _find(arguments: list[str]) -> str:
    deletes = "-delete" in arguments or any(
        word in ("-exec", "-execdir") and arguments[place + 1 : place + 2] in (["rm"], ["shred"])
        for place, word in enumerate(arguments)
    )
    return "it deletes what it finds" if deletes else ""


def _shred(_: list[str]) -> str:
    return "it destroys files beyond recovery"


def _power(_: list[str]) -> str:
    return "it shuts down or restarts the machine"


def _init(arguments: list[str]) -> str:
    return _power(arguments) if arguments[:1] in (["0"], ["6"]) else ""


def _systemctl(arguments: list[str]) -> str:
    return _power(arguments) if {"poweroff", "reboot", "halt", "kexec", "suspend", "hibernate"} & set(arguments) else ""


def _git(arguments: list[str]) -> str:
    verbs = [word for word in arguments if not word.startswith("-")]
    verb = next((word for word in verbs if word in _GIT), "")
    if not verb:
        return ""
    rest = arguments[arguments.index(verb) + 1 :]
    return _GIT[verb](rest)


def _push(rest: list[str]) -> str:
    forced = any(word in ("-f", "--mirror", "--delete", "-d") or word.startswith(("--force", "+")) for word in rest)
    return "it rewrites or deletes published history" if forced else ""


def _rewrite(_: list[str]) -> str:
    return "it rewrites history"


def _reset(rest: list[str]) -> str:
    return "it throws away changes" if "--hard" in rest else ""


def _clean(rest: list[str]) -> str:
    flags = "".join(word for word in rest if word.startswith("-") and not word.startswith("--"))
    return "it deletes untracked files" if "f" in flags or "--force" in rest else ""


def _rebase(rest: list[str]) -> str:
    return "" if {"--abort", "--quit", "--show-current-patch"} & set(rest) else "it rewrites history"


def _reflog(rest: list[str]) -> str:
    return "it rewrites history" if {"expire", "delete"} & set(rest) else ""


def _gc(rest: list[str]) -> str:
    return "it deletes unreachable history" if any(word.startswith("--prune") for word in rest) else ""


Rule = Callable[[list[str]], str]

_GIT: dict[str, Rule] = {
    "push": _push,
    "filter-branch": _rewrite,
    "filter-repo": _rewrite,
    "reset": _reset,
    "clean": _clean,
    "rebase": _rebase,
    "reflog": _reflog,
    "gc": _gc,
}
_RULES: dict[str, Rule] = {
    "rm": _remove,
    "dd": _dd,
    "find": _find,
    "shred": _shred,
    "srm": _shred,
    "shutdown": _power,
    "reboot": _power,
    "halt": _power,
    "poweroff": _power,
    "init": _init,
    "telinit": _init,
    "systemctl": _systemctl,
    "git": _git,
}
