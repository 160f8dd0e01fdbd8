"""Where a skill comes from: a folder, a git address, a zip (file or address), or a registry. Fetching runs nothing.

Registry: the API of ClawHub, `GET /api/v1/skills/{slug}` and `GET /api/v1/download?slug=&version=`.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from pathlib import Path
from typing import Literal, Protocol
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import Struct

from limpet.errors import InputError
from limpet.net.client import Caps, Fetched
from limpet.skills.unpack import MOST_BYTES, unpack

Kind = Literal["folder", "git", "zip", "web", "registry"]
REGISTRY = "clawhub:"
_SLUG = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_-]{0,63}")
_GIT_WAIT = 120.0
_CAPS = Caps(bytes=MOST_BYTES, seconds=60.0)


class Getter(Protocol):
    """Called for addresses; provided by `net.client.Web`."""

    async def get(self, url: str, *, caps: Caps = ...) -> Fetched: ...


class Source(Struct, frozen=True):
    """`place` is an absolute path, an address or the name in the registry; `want` a branch, tag or version."""

    kind: Kind
    place: str
    want: str = ""

    @property
    def origin(self) -> tuple[Kind, str]:
        """By which two versions are of one source."""
        place = self.place.rstrip("/")
        return self.kind, place.removesuffix(".git") if self.kind == "git" else place


class _Version(Struct, frozen=True):
    version: str = ""


class _Moderation(Struct, frozen=True, rename="camel"):
    is_suspicious: bool = False
    is_malware_blocked: bool = False
    summary: str | None = None


class _Listed(Struct, frozen=True, rename="camel"):
    """What a registry says of a skill."""

    latest_version: _Version | None = None
    moderation: _Moderation | None = None


class Arrived(Struct, frozen=True):
    """What was fetched: `revision` is the commit or version, `warning` what the registry says against it."""

    revision: str = ""
    warning: str = ""


def parse(text: str) -> Source:
    """The source that `text` names; a path counts from the folder we are in. Raises `InputError`."""
    text = text.strip()
    if local := _on_disk(text):
        return local
    if text.startswith(REGISTRY):
        slug, _, version = text.removeprefix(REGISTRY).partition("@")
        if not _SLUG.fullmatch(slug) or (version and not _VERSION.fullmatch(version)):
            raise InputError(
                f"{text!r} names no skill of a registry.", hint="Write clawhub:NAME or clawhub:NAME@1.2.3."
            )
        return Source("registry", slug, version)
    place, _, want = text.partition("#")
    if want.startswith("-"):
        raise InputError(f"{want!r} is no branch or tag.")
    plain = place.removeprefix("git+")
    if re.match(r"(?:ssh://|git@[\w.-]+:)", plain) or (plain.startswith("https://") and _is_git(place)):
        return Source("git", plain, want)
    if re.match(r"https?://", place):
        return Source("web", place)
    if "://" in place or place.startswith("-"):
        raise InputError(f"{text!r} cannot be fetched from.", hint="A folder, https, ssh, a zip, or clawhub:NAME.")
    raise InputError(f"{_absolute(text)} does not exist.")


def recorded(text: str) -> str:
    """How `text` is kept: a path is absolute, so that it means the same from every folder. Raises `InputError`."""
    source = parse(text)
    return source.place if source.kind in ("folder", "zip") else text.strip()


def is_same_origin(one: str, other: str) -> bool:
    """Whether two recorded sources are one, in whatever version. A path that is gone is still itself."""
    try:
        return one == other or parse(one).origin == parse(other).origin
    except InputError:
        return False


def _absolute(text: str) -> str:
    return os.path.abspath(os.path.expanduser(text))


def _on_disk(text: str) -> Source | None:
    path = _absolute(text)
    if not text or text.startswith("-"):
        return None
    return Source("folder", path) if os.path.isdir(path) else Source("zip", path) if os.path.isfile(path) else None


async def fetch(source: Source, folder: Path, *, web: Getter, registry: str, protocols: str = "https:ssh") -> Arrived:
    """Put what `source` has below the new `folder`. Raises `InputError`, `ToolError`.

    `protocols` is what git may use.
    """
    match source.kind:
        case "folder":
            await asyncio.to_thread(_copy, source.place, folder)
            return Arrived()
        case "zip":
            folder.mkdir()
            unpack(_limited(source.place), str(folder))
            return Arrived()
        case "web":
            return await _from_web(source.place, folder, web)
        case "git":
            return await _from_git(source, folder, protocols)
        case "registry":
            return await _from_registry(source, folder, web, registry=registry)


def _is_git(place: str) -> bool:
    path = urlsplit(place).path.rstrip("/")
    forge = urlsplit(place).hostname in ("github.com", "gitlab.com", "codeberg.org")
    return place.startswith("git+") or path.endswith(".git") or (forge and path.count("/") == 2)


def _copy(place: str, folder: Path) -> None:
    """Copy a folder, links as links: the scan tells them."""
    size = 0
    for root, _, names in os.walk(place):
        if f"{os.sep}.git" in root.removeprefix(place):
            continue
        size += sum(os.lstat(os.path.join(root, name)).st_size for name in names)
        if size > MOST_BYTES:
            raise InputError(f"{place} has over {MOST_BYTES:,} bytes, more than a skill may have.")
    try:
        shutil.copytree(place, folder, symlinks=True, ignore=shutil.ignore_patterns(".git", "__pycache__"))
    except (OSError, shutil.Error) as error:
        raise InputError(f"{place} cannot be copied: {error}.") from None


def _limited(path: str) -> bytes:
    with open(path, "rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise InputError(f"{path} has over {MOST_BYTES:,} bytes.")
    return data


async def _from_web(url: str, folder: Path, web: Getter) -> Arrived:
    found = await web.get(url, caps=_CAPS)
    if found.status != 200:
        raise InputError(f"{url} answers {found.status}.")
    if found.cut:
        raise InputError(f"{url} has over {MOST_BYTES:,} bytes.")
    folder.mkdir()
    unpack(found.body, str(folder))
    return Arrived()


async def _from_registry(source: Source, folder: Path, web: Getter, *, registry: str) -> Arrived:
    base, slug = registry.rstrip("/"), quote(source.place, safe="")
    answer = await web.get(f"{base}/api/v1/skills/{slug}", caps=Caps(bytes=1_000_000, seconds=30.0))
    if answer.status != 200:
        raise InputError(f"{base} has no skill {source.place} (it answers {answer.status}).")
    try:
        listed = msgspec.json.decode(answer.body, type=_Listed)
    except msgspec.DecodeError as error:
        raise InputError(f"{base} answers what no registry does: {error}.") from None
    said = listed.moderation or _Moderation()
    if said.is_malware_blocked:
        raise InputError(f"The registry has blocked {source.place} as malware. {said.summary or ''}".strip())
    version = source.want or (listed.latest_version.version if listed.latest_version else "")
    if not _VERSION.fullmatch(version):
        raise InputError(f"{base} names no version of {source.place}.")
    await _from_web(f"{base}/api/v1/download?slug={slug}&version={quote(version, safe='')}", folder, web)
    warning = f"the registry calls it suspicious: {said.summary or 'no reason given'}" if said.is_suspicious else ""
    return Arrived(version, warning)


async def _from_git(source: Source, folder: Path, protocols: str) -> Arrived:
    """A shallow clone without hooks, submodules, filters or questions; its `.git` is not kept."""
    options = ("core.hooksPath=/dev/null", "core.symlinks=true", "core.fsmonitor=false", "filter.lfs.smudge=cat")
    flags = [word for option in options for word in ("-c", option)]
    branch = ["--branch", source.want] if source.want else []
    words = [
        *flags,
        "clone",
        "--quiet",
        "--depth=1",
        "--no-tags",
        "--template=",
        *branch,
        "--",
        source.place,
        str(folder),
    ]
    await _git(words, protocols)
    revision = await _git(["-C", str(folder), "rev-parse", "HEAD"], protocols)
    shutil.rmtree(folder / ".git", ignore_errors=True)
    return Arrived(revision.strip()[:40])


async def _git(words: list[str], protocols: str) -> str:
    git = shutil.which("git")
    if git is None:
        raise InputError("The program git is not there.", hint="Install it, or take a zip.")
    env = {
        **{name: os.environ[name] for name in ("PATH", "HOME", "SSH_AUTH_SOCK") if name in os.environ},
        "GIT_ALLOW_PROTOCOL": protocols,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes -oConnectTimeout=10",
        "GIT_ASKPASS": "false",
        "LC_ALL": "C",
    }
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        git, *words, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=env
    )
    try:
        async with asyncio.timeout(_GIT_WAIT):
            out, err = await process.communicate()
    except TimeoutError:
        raise InputError(f"git did not end within {_GIT_WAIT:g} s.") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise InputError(f"git says: {err.decode('utf-8', 'replace').strip()[-300:]}")
    return out.decode("utf-8", "replace")
