"""Commands that always ask, sandbox or not (FEATURES F14).

A net, not a wall: it looks at the name and arguments of each simple command of a script. The wall is the sandbox. What
merely looks alike (`tool --format json`) is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache

from limpet.tools import shell
from limpet.tools.shell import Script, Word

_ROUGHLY = r"\|\|?|&&?|;|\n|\$\(|`|[(){}]"
_BOMB = r"(?<![\w:.-])([\w:.-]+)\s*\(\)\s*\{[^}]*\1\s*\|\s*\1"
_DEVICE = r"/dev/(sd|hd|vd|xvd|nvme|mmcblk|disk|mapper/|dm-|md|loop)\w*"
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
    if len(command) > shell.LONGEST or "\0" in command:
        return shell.TOO_MUCH
    if re.search(_BOMB, command):
        return "a fork bomb"
    # A word may be broken over two lines.
    texts = dict.fromkeys((command, command.replace("\\\n", "")))
    return next((found for text in texts if (found := _danger(text, depth=0))), "")


def _danger(text: str, *, depth: int) -> str:
    script = shell.read(text)
    if script.obstacle in (shell.NO_GRAMMAR, shell.TOO_MUCH):
        return script.obstacle
    commands = [[word.text for word in words] for words in script.commands]
    if script.obstacle == shell.UNREADABLE:
        commands += [piece.split() for piece in re.split(_ROUGHLY, text)]
    reasons = [*(_judge(words) for words in commands if words), *_touched(script)]
    if depth < 2 and any(_reads_commands(words) for words in script.commands):
        texts = {word.text for words in script.commands for word in words if " " in word.text}
        reasons += [_danger(one, depth=depth + 1) for one in (*script.inputs, *texts)]
    return next(filter(None, reasons), "")


def _touched(script: Script) -> Iterator[str]:
    """Why the files are a reason to ask that a script reads from and writes to."""
    if any(re.match(_DEVICE, target) for target in script.writes):
        yield "it writes to a disk device"
    for text in (*script.reads, *script.writes, *script.assigned):
        yield _credentials(text)


def _reads_commands(words: Sequence[Word]) -> bool:
    """Whether it is a shell that runs what it is given as input."""
    return shell.name_of(words) in shell.SHELLS and all(word.text.startswith("-") for word in words[1:])


def _credentials(text: str) -> str:
    found = secret_file(text)
    return f"it touches {found}, which holds credentials" if found else ""


def _judge(words: list[str]) -> str:
    name, arguments = words[0].rsplit("/", 1)[-1], words[1:]
    if found := next((one for one in map(_credentials, words) if one), ""):
        return found
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
    targets = [word for word in arguments if not word.startswith("-")]
    if not targets:
        return "it deletes the trees that it is given"
    for target in targets:
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


def _limpet(arguments: list[str]) -> str:
    return "it changes what Limpet itself may do" if _OWN & set(arguments) else ""


def _python(arguments: list[str]) -> str:
    return _limpet(arguments) if "limpet" in arguments else ""


_OWN = frozenset({"approvals", "backup", "config", "mcp", "onboard", "policy", "restore", "secrets", "service"})
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
    "limpet": _limpet,
    "python": _python,
    "python3": _python,
}
