"""Where things live: the home (`~/.limpet`, `LIMPET_HOME`) and the workspace."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from limpet.errors import UserError, WorkspaceError


class Home(Struct, frozen=True):
    """Every file of one Limpet. `config` may lie elsewhere (`--config`)."""

    root: Path
    config: Path

    @property
    def database(self) -> Path:
        return self.root / "limpet.db"

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def blobs(self) -> Path:
        return self.root / "blobs"

    @property
    def undo(self) -> Path:
        return self.root / "undo" / "copies.db"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def mcp(self) -> Path:
        return self.root / "mcp"

    @property
    def archive(self) -> Path:
        return self.root / "archive"

    def index(self, agent: str) -> Path:
        """The search index of an agent's memory; it can be thrown away."""
        return self.root / "index" / agent

    @property
    def workspace(self) -> Path:
        return self.root / "workspace"


def find_home(environ: Mapping[str, str], *, config: str = "") -> Home:
    """The home that `environ` names. `config` is the option `--config`; `LIMPET_CONFIG` says the same.

    Raises `UserError` when the user's own folder is not known.
    """
    named = environ.get("LIMPET_HOME", "").strip()
    root = _absolute(named or "~/.limpet", environ)
    file = config or environ.get("LIMPET_CONFIG", "").strip()
    return Home(root=root, config=_absolute(file, environ) if file else root / "config.toml")


def _absolute(text: str, environ: Mapping[str, str]) -> Path:
    if text == "~" or text.startswith("~/"):
        text = own_folder(environ) + text[1:]
    try:
        path = Path(text).expanduser()
    except RuntimeError as error:
        raise UserError(f"{text}: {error}", hint="Set LIMPET_HOME to a folder of your own.") from None
    return Path(os.path.abspath(path))  # not resolve(): a link stays the name that people know


def own_folder(environ: Mapping[str, str]) -> str:
    """The user's own folder: HOME, or what the system says where that is empty or relative. Raises `UserError`."""
    named = environ.get("HOME", "")
    if os.path.isabs(named):
        return named.rstrip("/")
    import pwd  # rare

    try:
        return pwd.getpwuid(os.getuid()).pw_dir.rstrip("/")
    except KeyError:
        hint = "Set HOME, or LIMPET_HOME to a folder of your own."
        raise UserError("HOME is not set and the system does not know this user.", hint=hint) from None


def prepare_home(home: Home) -> None:
    """Make the home and its folders, for this user only. Raises `UserError` with the remedy."""
    remedy = "Choose another folder with LIMPET_HOME, or make this one yours."
    for folder in (home.root, home.run, home.blobs, home.logs):
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except FileExistsError:
            raise UserError(f"{folder} is {_what(folder)}, not a folder.", hint=remedy) from None
        except OSError as error:
            raise UserError(f"{folder} cannot be made: {error.strerror}.", hint=remedy) from None
        if not os.access(folder, os.W_OK | os.X_OK):
            raise UserError(f"{folder} is not writable.", hint=remedy)


@contextmanager
def private_files() -> Generator[None]:
    """New files are for this user only while the block runs. For the start of a process, before it has threads."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def find_workspace(setting: str, home: Home) -> Path:
    """The workspace that `setting` names (`~` and links allowed), else the one in the home. Absolute.

    A relative path counts from the home, never from where the program happens to be started.
    """
    if not setting.strip():
        return home.workspace
    try:
        path = Path(setting.strip()).expanduser()
    except RuntimeError as error:
        raise WorkspaceError(f"The workspace {setting}: {error}", hint="Write the whole path.") from None
    if "\0" in setting:
        raise WorkspaceError("The workspace's path holds a zero byte.", hint="Correct agent.workspace.")
    return Path(os.path.abspath(home.root / path))


def workspace_fault(path: Path) -> str:
    """Why one cannot work in the folder `path`, as a sentence; empty when one can, or it can be made."""
    try:
        if path == Path(path.anchor):
            return "The workspace must not be the root of the file system."
        try:
            str(path).encode()
        except UnicodeEncodeError:
            return f"The workspace {path} has a name that is not UTF-8."
        if path.is_symlink() and not path.exists():
            return f"The workspace {path} is a link to nothing ({os.readlink(path)})."
        above = next((folder for folder in (path, *path.parents) if folder.exists()), path)
        if not above.is_dir():
            return f"The workspace {path} is {_what(path)}, not a folder."
        if not _writable(above):
            return f"The workspace {path} " + ("is read-only." if above == path else f"cannot be made in {above}.")
    except OSError as error:
        return f"The workspace {path} cannot be used: {error.strerror}."
    return ""


WORKSPACE_REMEDY = "Set another one: limpet config set agent.workspace PATH"


def prepare_workspace(path: Path) -> bool:
    """Make sure that `path` is a folder one can work in; whether it is brand-new (made here, or empty).

    Raises `WorkspaceError` that says what it is instead.
    """
    if fault := workspace_fault(path):
        raise WorkspaceError(fault, hint=WORKSPACE_REMEDY)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.scandir(path) as found:
            return next(found, None) is None
    except OSError as error:
        fault = f"The workspace {path} cannot be used: {error.strerror}."
        raise WorkspaceError(fault, hint=WORKSPACE_REMEDY) from None


def _writable(path: Path) -> bool:
    """For root `os.access` is always yes except on a read-only file system; the mode says what the owner meant."""
    if not os.access(path, os.W_OK | os.X_OK):
        return False
    return os.geteuid() != 0 or bool(path.stat().st_mode & 0o222)


def _what(path: Path) -> str:
    if path.is_symlink() and not path.exists():
        return "a link to nothing"
    if path.is_file():
        return "a file"
    return "below a file" if not path.exists() else "something else"
