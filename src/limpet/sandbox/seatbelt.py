"""A profile for `sandbox-exec` of macOS with the claims of the sandbox. UNTESTED: it was never run on a Mac.

So nothing uses it yet: on macOS every command asks. `limpet sandbox seatbelt` prints it, to be tried by hand.
"""

from __future__ import annotations

from limpet.errors import SandboxError

_SYSTEM = ("/usr", "/bin", "/sbin", "/System", "/Library", "/opt", "/private/etc", "/private/var/db/timezone", "/dev")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")


def profile(
    workspace: str, *, hidden: tuple[str, ...] = (), readonly: tuple[str, ...] = (), network: bool = False
) -> str:
    """The profile. All paths absolute and real; later rules win. Raises `SandboxError` for a path it cannot hold."""
    rules = [
        "(version 1)",
        "(deny default)",
        "(allow process-exec process-fork)",
        "(allow signal (target same-sandbox))",
        "(allow sysctl-read)",
        "(allow file-read-metadata)",
        f"(allow file-read* {_subpaths((*_SYSTEM, workspace))})",
        f"(allow file-write* {_subpaths((workspace,))})",
        f"(allow file-write-data {_literals(_DEVICES)})",
    ]
    if readonly:
        rules.append(f"(deny file-write* {_subpaths(readonly)})")
    if hidden:
        rules.append(f"(deny file-read* file-write* {_subpaths(hidden)})")
    rules.append("(allow network*)" if network else "(deny network*)")
    return "\n".join(rules) + "\n"


def _subpaths(paths: tuple[str, ...]) -> str:
    return " ".join(f"(subpath {_quoted(path)})" for path in paths)


def _literals(paths: tuple[str, ...]) -> str:
    return " ".join(f"(literal {_quoted(path)})" for path in paths)


def _quoted(path: str) -> str:
    if not path.startswith("/") or not path.isprintable():
        raise SandboxError(f"{path!r} cannot be written into a profile", hint="Use an absolute path on one line.")
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
