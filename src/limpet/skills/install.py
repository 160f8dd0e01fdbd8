"""Installing skills: fetched into a folder aside, scanned and shown there, and only then moved to where they are used.

Nothing of a skill runs: it is copied, and its files become unwritable for the agent by where they lie.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from difflib import unified_diff
from pathlib import Path

from msgspec import Struct, structs

from limpet.errors import InputError
from limpet.skills.discovery import Place, discover
from limpet.skills.fronts import Fronts
from limpet.skills.records import Installed, Records, digest_of, files_of, load, save
from limpet.skills.scan import Finding, Summary, scan, summarise
from limpet.skills.skill import Fault, Skill
from limpet.skills.sources import Getter, fetch, is_same_origin, parse, recorded

FOLDER = "skills"
_DIFF_LINES = 400


class Candidate(Struct, frozen=True):
    """A skill that was fetched and not installed yet, with what was found in it."""

    skill: Skill
    source: str
    revision: str
    files: dict[str, str]
    findings: tuple[Finding, ...]
    faults: tuple[Fault, ...]
    summary: Summary
    warning: str = ""

    @property
    def quarantine(self) -> str:
        """Why it may only be installed in quarantine; empty when nothing is that bad."""
        worst = [finding for finding in self.findings if finding.level == "danger"]
        return str(worst[0]) if worst else ""

    @property
    def doubtful(self) -> bool:
        """Whether the owner has to say yes to what was found."""
        return bool(self.findings or self.warning)


@asynccontextmanager
async def fetched(
    text: str, home: Path, *, web: Getter, registry: str, protocols: str = "https:ssh"
) -> AsyncGenerator[list[Candidate]]:
    """The skills that the source `text` has, in a folder that is gone when the block ends.

    Raises `InputError`, `ToolError`.
    """
    source = parse(text)
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetched-", dir=home) as aside:
        folder = Path(
            aside,
            "source",
            source.place.rstrip("/").rpartition("/")[2].removesuffix(".git").removesuffix(".zip") or "skill",
        )
        folder.parent.mkdir()
        arrived = await fetch(source, folder, web=web, registry=registry, protocols=protocols)
        found, faults = await asyncio.to_thread(_candidates, folder, Path(aside, "read.json"))
        if not found:
            why = "".join(f"\n{fault}".replace(f"{folder.parent}/", "") for fault in faults)
            raise InputError(f"There is no usable SKILL.md in {text}.{why}")
        kept = recorded(text)
        yield [structs.replace(one, source=kept, revision=arrived.revision, warning=arrived.warning) for one in found]


def check_origin(home: Path, candidate: Candidate) -> None:
    """Raises `InputError` when a skill of the candidate's name was installed from another source."""
    known = load(home).installed.get(candidate.skill.name)
    if known is not None and not is_same_origin(known.source, candidate.source):
        raise InputError(
            f"{candidate.skill.name} is installed from another source, {known.source}.",
            hint="Look at both; --force replaces it, and what was granted to it is asked for anew.",
        )


def install(home: Path, candidate: Candidate, *, at: int, force: bool = False) -> Installed:
    """Move a candidate into the home; one of that name that was installed before from the same source, or with `force`
    from whichever, is replaced. `at` is UTC ms.

    Raises `InputError` when it is from another one, or a folder is in the way that was not installed.
    """
    if not force:
        check_origin(home, candidate)
    records, name = load(home), candidate.skill.name
    target = home / FOLDER / name
    if os.path.lexists(target) and name not in records.installed:
        raise InputError(f"{target} is there already and was not installed.", hint="Move it away, or remove it.")
    if digest_of(files_of(candidate.skill.folder)) != digest_of(candidate.files):
        raise InputError("The files have changed since they were looked at.")
    target.parent.mkdir(mode=0o700, exist_ok=True)
    made = Installed(
        source=candidate.source,
        folder=str(target),
        digest=digest_of(candidate.files),
        files=candidate.files,
        at=at,
        revision=candidate.revision,
        quarantine=candidate.quarantine,
    )
    save(home, structs.replace(records, installed={**records.installed, name: made}))
    if target.exists():
        shutil.rmtree(target)
    shutil.move(candidate.skill.folder, target)
    return made


def remove(home: Path, name: str) -> None:
    """Delete an installed skill and what was granted to it. Raises `InputError`."""
    records = load(home)
    known = _known(records, name)
    shutil.rmtree(known.folder, ignore_errors=True)
    installed = {one: each for one, each in records.installed.items() if one != name}
    granted = {one: each for one, each in records.granted.items() if one != name}
    save(home, Records(installed=installed, granted=granted))


def release(home: Path, name: str) -> None:
    """Take a skill out of quarantine as it is now: the owner has looked at it. Raises `InputError`."""
    records = load(home)
    known = _known(records, name)
    files = files_of(known.folder)
    made = structs.replace(known, files=files, digest=digest_of(files), quarantine="")
    save(home, structs.replace(records, installed={**records.installed, name: made}))


def difference(before: str, after: str) -> str:
    """The differences of all files between two folders, as people read them, at most a few hundred lines."""
    old, new = (files_of(folder) if os.path.isdir(folder) else {} for folder in (before, after))
    lines: list[str] = []
    for name in sorted(set(old) | set(new)):
        if old.get(name) != new.get(name):
            was, now = _lines(os.path.join(before, name)), _lines(os.path.join(after, name))
            lines += unified_diff(was, now, f"installed/{name}", f"new/{name}", lineterm="")
    rest = len(lines) - _DIFF_LINES
    return "\n".join([*lines[:_DIFF_LINES], *([f"({rest} more lines)"] if rest > 0 else [])])


def _candidates(folder: Path, cache: Path) -> tuple[list[Candidate], Sequence[Fault]]:
    """The skills in a folder, and what is wrong with all that lies there."""
    found = discover([Place("home", str(folder.parent))], Fronts(cache), workspace=str(folder.parent))
    made: list[Candidate] = []
    for skill in found.skills:
        made.append(
            Candidate(
                skill=skill,
                source="",
                revision="",
                files=files_of(skill.folder),
                findings=tuple(scan(skill.folder)),
                faults=tuple(fault for fault in found.faults if fault.path.startswith(f"{skill.folder}/")),
                summary=summarise(skill.folder, skill.front.needs, tuple(tool.name for tool in skill.tools)),
            )
        )
    return made, found.faults


def _known(records: Records, name: str) -> Installed:
    if name not in records.installed:
        names = ", ".join(sorted(records.installed)) or "none"
        raise InputError(f"{name} was not installed by Limpet. Installed are: {names}.")
    return records.installed[name]


def _lines(path: str) -> list[str]:
    if os.path.islink(path):
        return [f"(a link to {os.readlink(path)})"]
    try:
        data = Path(path).read_bytes()
    except OSError:
        return []
    return ["(binary)"] if b"\0" in data else data.decode("utf-8", "replace").splitlines()
