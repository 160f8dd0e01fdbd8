"""Out of a backup into a home: unpacked beside it, held against its manifest, and put in its place in one step."""

from __future__ import annotations

import ctypes
import errno
import gzip
import hashlib
import os
import shutil
import sys
import tarfile
import tempfile
import time
import zlib
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath

import apsw
import msgspec

from limpet.cli.backup import CONFIG, MANIFEST, Manifest, secret_paths
from limpet.config.load import load_settings
from limpet.config.paths import Home, find_workspace
from limpet.config.table import Key
from limpet.config.write import set_values
from limpet.errors import ConfigError, InputError, StoreError, UserError
from limpet.gateway.gateway import only_one
from limpet.store import snapshot
from limpet.store.driver import check_version
from limpet.store.owner import Owner

FORMAT = 1
LARGEST_MANIFEST = 256 << 20
MOUNTED = "A mount point cannot be swapped: set LIMPET_HOME to a folder below it."
_REMADE = ("run", "logs")
"""A home that holds files only here is empty."""
_AT_FDCWD, _EXCHANGE, _SWAP = -100, 2, 2

Swap = Callable[[Path, Path], bool]
"""Swaps two folders in one step, or says False where that cannot be done."""
Probe = Callable[[str], None]
"""Told of each step, so that tests can end the process right there."""


def _no_probe(step: str) -> None:
    pass


def exchange(one: Path, other: Path) -> bool:
    """Swap two folders in one step; False where the system cannot."""
    library = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(one), os.fsencode(other)
    try:
        if sys.platform == "darwin":
            done = library.renamex_np(*names, _SWAP)
        else:
            done = library.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _EXCHANGE)
    except AttributeError:
        return False
    if done == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(code, os.strerror(code))


def check_backup(file: Path, *, beside: Path) -> Manifest:
    """What the backup `file` holds, after all of it was unpacked and looked at in the folder `beside`, and thrown away.

    Raises `InputError` for a file that is none, half or changed; `StoreError`, `ConfigError` for one of a newer Limpet.
    """
    with _unpacked(file, beside, name="check") as (_, manifest):
        return manifest


def restore(
    file: Path, home: Home, *, replace: bool, probe: Probe = _no_probe, swap: Swap = exchange
) -> tuple[Manifest, Path | None]:
    """Make the home that the backup `file` holds; gives its manifest, and where the home before it lies now.

    Whatever happens before the last step, also SIGKILL, the home stays as it was. Raises as `check_backup`, and
    `UserError` where a home is in the way or in use.
    """
    root = Path(os.path.realpath(home.root))
    full = _holds_files(root)
    if full and not replace:
        raise InputError(
            f"{home.root} is a home already.",
            hint="limpet restore --replace FILE puts it aside, as a whole; or set LIMPET_HOME to another folder.",
        )
    try:
        root.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with ExitStack() as stack:
            if root.exists():
                stack.enter_context(_alone(root))
            fresh, manifest = stack.enter_context(_unpacked(file, root.parent, name=root.name))
            probe("checked")
            _point_to_workspaces(fresh, manifest)
            if full and not manifest.secrets:
                _keep_secrets(root, fresh)
            os.sync()
            probe("ready")
            return manifest, _put_in_place(fresh, root, probe=probe, swap=swap)
    except OSError as error:
        hint = MOUNTED if error.errno in (errno.EBUSY, errno.EXDEV) else ""
        raise InputError(f"{home.root} cannot be restored: {error.strerror}. It is as it was.", hint=hint) from error


def _holds_files(root: Path) -> bool:
    return root.is_dir() and any(
        path.is_file() and path.relative_to(root).parts[0] not in _REMADE for path in root.rglob("*")
    )


@contextmanager
def _alone(root: Path) -> Generator[None]:
    """Nobody else works in the home while the block runs. Raises `UserError` that names who does."""
    run = root / "run"
    run.mkdir(mode=0o700, exist_ok=True)
    with only_one(str(run)):
        owner = Owner(str(run))
        try:
            others = [name for name in owner.others() if name != "gateway"]  # which is our own hold on it
            if others:
                raise UserError(
                    f"Processes work in {root}: {', '.join(other.partition('-')[0] for other in others)}.",
                    hint="End them first.",
                )
            yield
        finally:
            owner.close()


@contextmanager
def _unpacked(file: Path, beside: Path, *, name: str) -> Generator[tuple[Path, Manifest]]:
    """The backup in a new folder, whole and of a version we know; it is deleted at the end of the block if it is still
    there."""
    folder = Path(tempfile.mkdtemp(prefix=f".{name}.restoring-", dir=beside))
    try:
        manifest = _unpack(file, folder)
        _check_content(folder, manifest)
        yield folder, manifest
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _unpack(file: Path, folder: Path) -> Manifest:
    """All files of the archive, each held against the manifest. Raises `InputError`."""
    found: dict[str, tuple[str, int]] = {}
    try:
        with gzip.open(file) as stream, tarfile.open(fileobj=stream, mode="r:") as tar:
            for member in tar:
                if not member.isreg() or not _is_inside(member.name) or member.name in found:
                    raise InputError(f"{file} is not to be trusted: it has {member.name!r}. Nothing was changed.")
                if member.name == MANIFEST and member.size > LARGEST_MANIFEST:
                    raise InputError(f"{file} is not to be trusted: its manifest is too large. Nothing was changed.")
                found[member.name] = _unpack_file(tar, member, folder / member.name)
            while stream.read(1 << 20):  # to its checksum
                pass
        manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
    except FileNotFoundError as error:
        raise _half(file, f"it has no {MANIFEST}") from error
    except (tarfile.TarError, EOFError, zlib.error, msgspec.MsgspecError) as error:
        raise _half(file, str(error)) from error
    except OSError as error:
        if error.errno is None:  # gzip's own
            raise _half(file, str(error)) from error
        raise InputError(f"{file} cannot be unpacked: {error.strerror}. Nothing was changed.") from error
    (folder / MANIFEST).unlink()
    del found[MANIFEST]
    if manifest.format > FORMAT:
        raise InputError(f"{file} was written by a newer Limpet ({manifest.limpet}).", hint="Update Limpet.")
    wanted = {name: (item.sha256, item.size) for name, item in manifest.files.items()}
    if wrong := sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name)):
        raise _half(file, f"{len(wrong)} files are missing or changed, such as {wrong[0]}")
    return manifest


def _half(file: Path, why: str) -> InputError:
    return InputError(f"{file} is no whole backup: {why}. Nothing was changed.", hint="Take another one.")


def _is_inside(name: str) -> bool:
    """Whether a name leads to a place below, and is written in the one way that we write it."""
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts and str(path) == name


def _unpack_file(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> tuple[str, int]:
    """Write one file; gives its SHA-256 and size. All above it are folders that we made."""
    source = tar.extractfile(member)
    if source is None:
        raise EOFError("a file is missing")
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with open(target, "xb", opener=_executable if member.mode & 0o100 else _private) as file:
        while chunk := source.read(1 << 20):
            digest.update(chunk)
            size += file.write(chunk)
    return digest.hexdigest(), size


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _executable(path: str, flags: int) -> int:
    return os.open(path, flags, 0o700)


def _check_content(folder: Path, manifest: Manifest) -> None:
    """Databases are whole, and we know their version and that of the settings. Raises `StoreError`, `ConfigError`."""
    for name in manifest.databases:
        try:
            wrong = snapshot.faults(str(folder / name))
        except apsw.Error as error:
            wrong = [str(error)]
        if wrong:
            raise StoreError(f"{name} of the backup is damaged: {'; '.join(wrong[:3])}. Nothing was changed.")
    database = folder / "limpet.db"
    if database.exists():
        check_version(snapshot.schema(str(database)), "limpet.db of the backup")
    load_settings(folder / CONFIG, {})


def _point_to_workspaces(fresh: Path, manifest: Manifest) -> None:
    """The settings name the workspaces where they are now: below the home."""
    settings = load_settings(fresh / CONFIG, {}).settings
    home = Home(root=fresh, config=fresh / CONFIG)
    values: dict[Key, object] = {}
    for agent, name in manifest.workspaces.items():
        own = settings.agent if agent == "main" else settings.agents.get(agent)
        default = "" if agent == "main" else f"agents/{agent}/workspace"
        if find_workspace((own.workspace if own else "") or default, home) != fresh / name:
            values[("agent", "workspace") if agent == "main" else ("agents", agent, "workspace")] = name
    if values:
        set_values(fresh / CONFIG, values)


def _keep_secrets(root: Path, fresh: Path) -> None:
    """Secrets that the backup was made without stay those of the home before."""
    try:
        table = load_settings(root / CONFIG, {}).table
    except ConfigError:  # damaged: what the backup replaces
        table = {}
    for path in secret_paths(root, table):
        target = fresh / os.path.relpath(path, root)
        if not path.is_relative_to(root) or target.exists():
            continue
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, target, symlinks=True)
        elif path.is_file():
            shutil.copy2(path, target)


def _put_in_place(fresh: Path, root: Path, *, probe: Probe, swap: Swap) -> Path | None:
    """`fresh` becomes `root`; gives where the one before lies, None where there was nothing worth it."""
    if not root.exists():
        os.rename(fresh, root)
        return None
    worth = _holds_files(root)
    aside = root.with_name(f"{root.name}.before-restore-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
    os.rename(fresh, aside)
    try:
        swapped = swap(aside, root)
    except OSError:
        os.rename(aside, fresh)
        raise
    if not swapped:
        os.rename(aside, fresh)
        os.rename(root, aside)  # the one moment without a home; it lies whole beside its place
        probe("aside")
        try:
            os.rename(fresh, root)
        except OSError:
            os.rename(aside, root)
            raise
    probe("in place")
    if worth:
        return aside
    shutil.rmtree(aside)
    return None
