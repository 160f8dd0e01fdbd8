"""A home in one file: every database as it is at one moment, blobs, workspaces, settings, and a manifest to hold it
against. What `limpet restore` reads is in `backup_read`."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct, field

from limpet import __version__
from limpet.cli.terminal import readable
from limpet.config.agents import agent_names, settings_of
from limpet.config.load import Loaded
from limpet.config.paths import Home, find_workspace
from limpet.config.schema import CURRENT_VERSION
from limpet.config.secrets import STORE, literal_secrets, secret_settings
from limpet.config.server_token import TOKEN_FILE
from limpet.config.table import Key, Table, look_up, split_key
from limpet.config.write import unset_value
from limpet.errors import InputError, StoreError
from limpet.store import snapshot

MANIFEST = "manifest.json"
DRAFTS = ".limpet-backup-"
"""What the folders of unfinished backups begin with."""
LEFT = 6 * 3600
"""Seconds after which such a folder is nobody's."""
CONFIG = "config.toml"
OUTSIDE = "workspaces"
"""The folder of the file, and of the home it becomes, for workspaces that lay outside the home."""
NOT_KEPT = ("run", "logs", "index", "browser", "secrets.lock")
"""What is made anew, or belongs to this machine."""
SECRETS = (STORE, TOKEN_FILE, "web-password", "channels/matrix")
"""Files and folders of the home that are left at home, beside `secrets-*.key` and what `file:` names; the Matrix
account's folder has its keys."""
_DATABASE_PARTS = ("-wal", "-shm", "-journal", ".db.lock", ".bak")


class Item(Struct, frozen=True, omit_defaults=True):
    """A file of the backup: SHA-256 (hex), bytes, whether it may be executed."""

    sha256: str
    size: int
    executable: bool = False


class Manifest(Struct, frozen=True):
    """What a backup holds. `made` is UTC ms, `schema` that of limpet.db (0: there is none), `config` the version of the
    settings. `workspaces`: agent to its folder in the backup. `left_out`: what was there and is not in it, with why.
    """

    limpet: str
    made: int
    schema: int
    config: int
    secrets: bool
    files: dict[str, Item]
    databases: tuple[str, ...]
    workspaces: dict[str, str] = field(default_factory=dict[str, str])
    left_out: tuple[str, ...] = ()
    format: int = 1


def write_backup(target: Path, home: Home, loaded: Loaded, *, secrets: bool, now: int) -> Manifest:
    """Write the backup of `home` to the new file `target`; a crash leaves no half one under that name.

    Raises `InputError` when there is something, or it cannot be written; `StoreError` for a database.
    """
    if os.path.lexists(target):
        raise InputError(f"{target} is there already.", hint="Name a new file.")
    if not home.root.is_dir():
        raise InputError(f"There is nothing to back up: {home.root} does not exist.")
    try:
        _clear(target.parent, now)
        with tempfile.TemporaryDirectory(prefix=DRAFTS, dir=target.parent) as folder:
            draft = Path(folder) / "backup"
            manifest = _Packing(home, loaded, Path(folder), secrets=secrets).write(draft, now=now)
            _publish(draft, target)
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror}.", hint="Name another place.") from error
    return manifest


def _clear(folder: Path, now: int) -> None:
    """Delete what backups that were killed have left there; they may hold secrets."""
    for draft in folder.glob(f"{DRAFTS}*"):
        if draft.stat().st_mtime < now / 1000 - LEFT:
            shutil.rmtree(draft, ignore_errors=True)


def secret_paths(root: Path, table: Table) -> set[Path]:
    """Files and folders of the home `root` that hold secrets."""
    named = {root / name for name in SECRETS} | set(root.glob("secrets-*.key"))
    references = (reference for _, reference in secret_settings(table) if reference.startswith("file:"))
    with contextlib.suppress(RuntimeError):  # a `~` of nobody
        named |= {Path(os.path.abspath(root / Path(one[5:].strip()).expanduser())) for one in references}
    return named


class _Packing:
    """One backup while it is written."""

    def __init__(self, home: Home, loaded: Loaded, folder: Path, *, secrets: bool) -> None:
        self._home = home
        self._loaded = loaded
        self._folder = folder
        self._secrets = secrets
        self._hidden = set[Path]() if secrets else secret_paths(home.root, loaded.table)
        self._files: dict[str, Item] = {}
        self._databases: list[str] = []
        self._left_out: dict[str, str] = {}

    def write(self, draft: Path, *, now: int) -> Manifest:
        root = self._home.root
        with open(draft, "xb", opener=_private) as file:
            with tarfile.open(fileobj=file, mode="w:gz", compresslevel=6) as tar:
                # Blobs before the database, and those that came meanwhile after it: every row has its file.
                self._add_tree(tar, self._home.blobs, "blobs")
                schema = self._add_database(tar, self._home.database) if self._home.database.exists() else 0
                self._add_config(tar)
                workspaces = self._add_workspaces(tar)
                self._add_tree(tar, root, "", skip=[root / name for name in (*NOT_KEPT, CONFIG)])
                manifest = Manifest(
                    limpet=__version__,
                    made=now,
                    schema=schema,
                    config=CURRENT_VERSION,
                    secrets=self._secrets,
                    files=self._files,
                    databases=tuple(self._databases),
                    workspaces=workspaces,
                    left_out=tuple(f"{what}: {why}" for what, why in self._left_out.items()),
                )
                _add(tar, MANIFEST, self._draft(msgspec.json.encode(manifest)))
            file.flush()
            os.fsync(file.fileno())
        return manifest

    def _leave_out(self, what: str, why: str) -> None:
        self._left_out[readable(what)] = why

    def _draft(self, data: bytes) -> Path:
        path = self._folder / "draft"
        path.write_bytes(data)
        return path

    def _add_config(self, tar: tarfile.TarFile) -> None:
        """The settings; secrets that stand in them are left out, unless they are wanted."""
        if not self._home.config.exists():
            return
        copy = self._folder / CONFIG
        shutil.copyfile(self._home.config, copy)
        for key in [] if self._secrets else literal_secrets(self._loaded.table):
            if unset_value(copy, _setting(self._loaded.table, split_key(key))):
                self._leave_out(f"the setting {key}", "a secret")
        self._add_file(tar, copy, CONFIG)

    def _add_workspaces(self, tar: tarfile.TarFile) -> dict[str, str]:
        found: dict[str, str] = {}
        names: dict[Path, str] = {}
        for agent in agent_names(self._loaded.settings):
            path = find_workspace(settings_of(self._loaded.settings, agent).agent.workspace, self._home)
            if path not in names:
                inside = path.is_relative_to(self._home.root) and path != self._home.root
                names[path] = path.relative_to(self._home.root).as_posix() if inside else f"{OUTSIDE}/{agent}"
                self._add_tree(tar, path, names[path], skip=(self._home.root,))
            found[agent] = names[path]
        return found

    def _add_tree(self, tar: tarfile.TarFile, folder: Path, name: str, *, skip: Collection[Path] = ()) -> None:
        """The files below `folder` that are not in the backup yet, as `name/…`."""
        for path in self._files_below(folder, skip):
            inner = path.relative_to(folder).as_posix()
            inside = f"{name}/{inner}" if name else inner
            ours = not name  # all but blobs and workspaces, which are added before
            if inside in self._files or (ours and path.name.endswith(_DATABASE_PARTS)):
                continue
            try:
                inside.encode()
                if ours and path.suffix == ".db":
                    self._add_database(tar, path)
                else:
                    self._add_file(tar, path, inside)
            except UnicodeEncodeError:
                self._leave_out(os.fsencode(inside).decode(errors="replace"), "its name is not UTF-8")
            except StoreError as error:
                self._leave_out(inside, str(error))
            except FileNotFoundError:
                continue  # deleted meanwhile, like any file an hour ago

    def _files_below(self, folder: Path, skip: Collection[Path]) -> Iterator[Path]:
        """The ordinary files below `folder`, in order; what else there is is noted."""
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except FileNotFoundError:
            return
        for entry in entries:
            path = Path(entry.path)
            if path in skip or path == self._folder:
                continue
            if path in self._hidden:
                self._leave_out(str(path), "holds secrets")
            elif entry.is_dir(follow_symlinks=False):
                yield from self._files_below(path, skip)
            elif entry.is_file(follow_symlinks=False):
                yield path
            else:
                self._leave_out(str(path), "a link" if entry.is_symlink() else "no ordinary file")

    def _add_database(self, tar: tarfile.TarFile, path: Path) -> int:
        """The database at `path` of the home as it is now; gives the version of its schema."""
        copy = self._folder / "copy.db"
        copy.unlink(missing_ok=True)
        snapshot.copy(str(path), str(copy))
        name = path.relative_to(self._home.root).as_posix()
        self._add_file(tar, copy, name)
        self._databases.append(name)
        return snapshot.schema(str(copy))

    def _add_file(self, tar: tarfile.TarFile, path: Path, name: str) -> None:
        """The file as it is read now: what is written to it meanwhile changes neither its length nor its hash."""
        draft = self._folder / "draft"
        with open(path, "rb") as source, open(draft, "wb") as copy:
            shutil.copyfileobj(source, copy, 1 << 20)
            executable = bool(os.fstat(source.fileno()).st_mode & stat.S_IXUSR)
        with open(draft, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        self._files[name] = Item(digest, _add(tar, name, draft, executable=executable), executable)


def _add(tar: tarfile.TarFile, name: str, path: Path, *, executable: bool = False) -> int:
    """Add a file without owner and times of this machine; gives its size."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = path.stat().st_size, 0o700 if executable else 0o600
    with open(path, "rb") as file:
        tar.addfile(info, file)
    return info.size


def _publish(draft: Path, target: Path) -> None:
    """Give the file its name, never over one that has appeared meanwhile where the file system can tell."""
    try:
        os.link(draft, target)
    except FileExistsError:
        raise
    except OSError:  # no links there, as on most sticks
        os.rename(draft, target)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _setting(table: Table, key: Key) -> Key:
    """The setting that `key` names or is an element of."""
    return key if look_up(table, key) is not None else key[:-1]
