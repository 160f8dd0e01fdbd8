"""What the configuration says of the servers, in the words of this unit: references resolved, nothing started."""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from limpet.config.schema import ServerSettings, Settings
from limpet.config.secrets import resolve
from limpet.errors import ConfigError, SandboxError
from limpet.mcp.stdio import Program
from limpet.sandbox import bubblewrap
from limpet.sandbox.limits import Limits
from limpet.sandbox.network import Network
from limpet.sandbox.probe import examine

PASSED_ON = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER")
"""Variables that a server gets besides those that are named for it."""


class ServerSpec(Struct, frozen=True):
    """One server, ready to be started. `env` is all it gets by name; `fault` says why it cannot be started,
    `home` is the folder whose store of secrets holds its login. With `sandbox` it is isolated: it may write the
    `workspace`, read the folders `reads`, and see `network`.

    `timeout` and `start` are seconds. `tools`, `allow` and `read_only` are the server's own names for its tools.
    """

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    timeout: float = 60.0
    start: float = 30.0
    tools: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    trust: Literal["external", "tool"] = "external"
    fault: str = ""
    home: str = ""
    sandbox: bool = False
    network: Literal["none", "open"] = "none"
    reads: tuple[str, ...] = ()
    workspace: str = ""

    @property
    def fingerprint(self) -> str:
        """What its tools depend on, as a hash: another program or address has other tools."""
        parts = (self.command, self.args, self.cwd, self.url, sorted(self.env), sorted(self.headers))
        return sha256(msgspec.json.encode(parts)).hexdigest()[:16]


def program_of(spec: ServerSpec) -> Program:
    """The program of a server, ready to be started. Raises `SandboxError` where it is to be isolated and cannot be."""
    command = (spec.command, *spec.args)
    if not spec.sandbox:
        return Program(command, spec.env, spec.cwd)
    found = examine()
    if found.kind == "none":
        raise SandboxError(f"there is no sandbox here: {found.reason}", hint=found.remedy)
    workspace = os.path.realpath(spec.workspace)
    argv = bubblewrap.arguments(
        found.path,
        workspace=workspace,
        folder=os.path.realpath(spec.cwd) if spec.cwd else workspace,
        limits=Limits(),
        hidden=(spec.home,),
        network=Network(spec.network),
    )
    for folder in spec.reads:
        argv += ["--ro-bind", folder, folder]
    return Program((*argv, *command), {**spec.env, "HOME": "/tmp", "TMPDIR": "/tmp"})


def specs_of(
    settings: Settings, root: Path, environ: Mapping[str, str], *, workspace: str = ""
) -> tuple[ServerSpec, ...]:
    """Every enabled server, by name. `root` is the home, for references to files; `workspace` for those isolated."""
    servers = sorted(settings.mcp.servers.items())
    return tuple(
        spec_of(name, one, root=root, environ=environ, workspace=workspace) for name, one in servers if one.enabled
    )


def spec_of(
    name: str, server: ServerSettings, *, root: Path, environ: Mapping[str, str], workspace: str = ""
) -> ServerSpec:
    """One server. A reference that leads nowhere, and neither or both of command and address, are its fault."""
    fault = "" if bool(server.command) != bool(server.url) else "it needs either a command or a url"
    env = {key: environ[key] for key in PASSED_ON if key in environ}
    headers: dict[str, str] = {}
    for target, values, part in ((env, server.env, "env"), (headers, server.headers, "headers")):
        for key, value in values.items():
            try:
                target[key] = resolve(value, key=f"mcp.servers.{name}.{part}.{key}", root=root, environ=environ)
            except ConfigError as error:
                fault = fault or str(error)
    return ServerSpec(
        name=name,
        command=os.path.expanduser(server.command),
        args=server.args,
        env=env,
        cwd=os.path.expanduser(server.cwd),
        url=server.url.strip(),
        headers=headers,
        timeout=server.timeout,
        start=server.start,
        tools=server.tools,
        allow=server.allow,
        read_only=server.read_only,
        trust=server.trust,
        fault=fault,
        home=str(root),
        sandbox=server.sandbox and bool(server.command),
        network=server.network,
        reads=tuple(os.path.realpath(os.path.expanduser(folder)) for folder in server.reads),
        workspace=workspace,
    )
