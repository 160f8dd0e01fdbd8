"""What the sandbox claims, each claim with a command that tries to break it (`limpet sandbox test`)."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

from msgspec import Struct

from limpet.sandbox.bubblewrap import search_path
from limpet.sandbox.limits import Limits
from limpet.sandbox.network import NO_NETWORK, Network
from limpet.sandbox.run import Finished, Job, Sandbox

MARK = "outside-4711"
"""Stands in files that no command may read."""
_SAME = ("PATH", "LANG", "PWD", "OLDPWD", "SHLVL", "_")
"""Variables that a shell has anyway, or that each command is given."""
_GUARD = 30.0
"""Seconds for one attempt."""


class Verdict(Struct, frozen=True):
    """`said` is what was seen, or why the claim could not be tried."""

    claim: str
    state: Literal["holds", "fails", "not tried"]
    said: str = ""


class Ground:
    """Folders to try things in, and a server on loopback that counts who reaches it."""

    def __init__(self, root: Path) -> None:
        self.workspace = root / "workspace"
        self.outside = root / "outside"
        self.hidden = self.workspace / ".state"
        self.protected = self.workspace / "AGENTS.md"
        for folder in (self.workspace, self.outside, self.hidden):
            folder.mkdir()
        for folder in (self.outside, self.hidden):
            (folder / "secret").write_text(MARK)
        self.protected.write_text("rules")
        self.visits = 0
        self.port = 0

    def visit(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.visits += 1
        writer.close()

    async def run(self, command: str, *, limits: Limits, timeout: float, network: Network) -> tuple[Finished, str]:
        """How `command` ended in the sandbox, and its output."""
        out = bytearray()
        job = Job(
            command.format(outside=self.outside, hidden=self.hidden, port=self.port),
            str(self.workspace),
            str(self.workspace),
            {"PATH": search_path(), "LANG": "C.UTF-8"},
            timeout=timeout,
            limits=limits,
            hidden=(str(self.hidden),),
            readonly=(str(self.protected),),
            network=network,
        )
        async with Sandbox() as sandbox:
            finished = await sandbox.run(job, out.extend)
        return finished, out.decode("utf-8", "replace")


Check = Callable[[Ground, Finished, str], bool]


class Attempt(Struct, frozen=True):
    """`holds` looks at what became of `command`."""

    claim: str
    command: str
    holds: Check
    limits: Limits = Limits()
    timeout: float = _GUARD
    network: Network = NO_NETWORK


def _unseen(ground: Ground, finished: Finished, out: str) -> bool:
    return MARK not in out and "tried" in out


def _scrubbed(ground: Ground, finished: Finished, out: str) -> bool:
    lines = set(out.replace("\0", "\n").splitlines())
    ours = {f"{name}={value}" for name, value in os.environ.items() if name not in _SAME}
    return "LANG=C.UTF-8" in lines and not ours & lines


def _said(pattern: str) -> Check:
    return lambda ground, finished, out: re.search(pattern, out) is not None


def _limited(name: str) -> Check:
    return lambda ground, finished, out: finished.limit == name


_CONNECT = "python3 -c \"import socket; socket.create_connection(('{host}', {port}), 2)\" 2>&1; echo tried"

ATTEMPTS: Sequence[Attempt] = (
    Attempt(
        "the workspace can be written",
        "echo text > made; cat made",
        lambda ground, finished, out: out == "text\n" and (ground.workspace / "made").exists(),
    ),
    Attempt(
        "nothing outside can be written",
        "for d in {outside} /usr /etc /var / /opt; do echo x > $d/limpet-made; done 2>/dev/null; echo tried",
        lambda ground, finished, out: (
            not any(
                (folder / "limpet-made").exists()
                for folder in (ground.outside, *map(Path, ("/usr", "/etc", "/var", "/")))
            )
        ),
    ),
    Attempt(
        "the kernel's settings cannot be written",
        "for f in /proc/sys/kernel/* /proc/sysrq-trigger; do test -f $f -a -w $f && echo $f; done; echo tried",
        lambda ground, finished, out: out == "tried\n",
    ),
    Attempt("files outside cannot be read", "cat {outside}/secret /proc/1/root{outside}/secret; echo tried", _unseen),
    Attempt("links lead nowhere outside", "ln -s {outside} link; cat link/secret; echo tried", _unseen),
    Attempt("hidden folders are empty", "cat {hidden}/secret; ls -A {hidden}; echo tried", _unseen),
    Attempt(
        "protected files are read-only",
        "echo x >> AGENTS.md; rm -f AGENTS.md; mv AGENTS.md other; ln -sf made AGENTS.md",
        lambda ground, finished, out: ground.protected.read_text() == "rules" and not ground.protected.is_symlink(),
    ),
    Attempt(
        "there is no network",
        _CONNECT.replace("{host}", "127.0.0.1"),
        lambda ground, finished, out: "tried" in out and not ground.visits,
    ),
    Attempt("no name can be looked up", "getent hosts example.com || echo none", _said(r"^none$")),
    Attempt("the environment holds nothing of ours", "env; cat /proc/*/environ", _scrubbed),
    Attempt("no other process is seen", "ls -d /proc/[0-9]* | wc -l", _said(r"^\s*[1-9]\s*$")),
    Attempt("there is no terminal", "(: < /dev/tty) 2>/dev/null || echo none; tty", _said(r"^none\nnot a tty")),
    Attempt("there are no privileges", "grep CapEff /proc/self/status", _said(r"CapEff:\s0{16}$")),
    Attempt("none can be gained", "grep NoNewPrivs /proc/self/status", _said(r"NoNewPrivs:\s1$")),
    Attempt("no disk is seen", "ls /dev | grep -E '^(sd|vd|nvme|mem$|kmem|kvm)' || echo none", _said(r"^none$")),
    Attempt("no socket of the system is seen", "find /run /tmp /var -type s 2>/dev/null | wc -l", _said(r"^\s*0\s*$")),
    Attempt("it runs below the agent's priority", "python3 -c 'import os; print(os.nice(0))'", _said(r"^([5-9]|1\d)$")),
    Attempt(
        "memory is limited",
        "python3 -c 'import time; x = b\"x\" * 150_000_000; time.sleep(9)' & wait",
        _limited("memory"),
        limits=Limits(memory=60_000_000),
    ),
    Attempt(
        "the number of processes is limited",
        "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 9 & done; wait",
        _limited("processes"),
        limits=Limits(processes=8),
    ),
    Attempt(
        "the size of files is limited",
        "head -c 300000 /dev/zero > big",
        lambda ground, finished, out: (ground.workspace / "big").stat().st_size == 100_000,
        limits=Limits(file_size=100_000),
    ),
    Attempt(
        "the size of /tmp is limited",
        "head -c 3000000 /dev/zero > /tmp/big; wc -c < /tmp/big",
        _said(r"\b10\d{5}\s*$"),
        limits=Limits(scratch=1_000_000),
    ),
    Attempt(
        "when time is over everything ends",
        "setsid sleep 4711471 & (trap '' TERM; sleep 4711471) & sleep 4711471",
        lambda ground, finished, out: finished.timed_out and not running("4711471"),
        timeout=0.3,
    ),
)


async def examine_all() -> list[Verdict]:
    """The verdict on each claim, in order; about five seconds. Without a sandbox nothing is tried."""
    report = Sandbox().report
    if report.kind == "none":
        return [Verdict(one.claim, "not tried", report.reason) for one in ATTEMPTS]
    verdicts: list[Verdict] = []
    for one in ATTEMPTS:
        async with ground() as place:
            verdicts.append(await attempt(one, place))
    verdicts.append(await _dies_with_the_agent())
    return verdicts


@asynccontextmanager
async def ground() -> AsyncGenerator[Ground]:
    """A new ground, gone when the block ends."""
    with tempfile.TemporaryDirectory(prefix="limpet-claims-") as root:
        place = Ground(Path(root).resolve())
        server = await asyncio.start_server(place.visit, "127.0.0.1", 0)
        place.port = server.sockets[0].getsockname()[1]
        try:
            yield place
        finally:
            server.close()
            await server.wait_closed()


async def attempt(one: Attempt, place: Ground) -> Verdict:
    """Run the command of `one`, and look."""
    finished, out = await place.run(one.command, limits=one.limits, timeout=one.timeout, network=one.network)
    if finished.timed_out and one.timeout == _GUARD:
        return Verdict(one.claim, "not tried", f"the attempt did not end within {_GUARD:g} s")
    if one.holds(place, finished, out):
        return Verdict(one.claim, "holds")
    how = finished.limit or f"exit code {finished.exit_code}"
    return Verdict(one.claim, "fails", f"{how}: {' '.join(out.split())[:200]}")


_CHILD = """
import asyncio
from limpet.sandbox.run import Job, Sandbox
from limpet.sandbox.bubblewrap import search_path
job = Job("setsid sleep {mark} & echo begun; sleep {mark}", {folder!r}, {folder!r}, {{"PATH": search_path()}})
asyncio.run(Sandbox().run(job, lambda data: print("begun", flush=True)))
"""


async def _dies_with_the_agent() -> Verdict:
    """An agent of its own is killed while it runs a command."""
    claim, mark = "commands die with the agent", "4711472"
    with tempfile.TemporaryDirectory(prefix="limpet-claims-") as folder:
        code = _CHILD.format(mark=mark, folder=os.path.realpath(folder))
        child = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
        assert child.stdout is not None
        try:
            async with asyncio.timeout(_GUARD):
                begun = await child.stdout.readline()
        except TimeoutError:
            begun = b""
        finally:
            child.kill()
            await child.communicate()
        if not begun:
            return Verdict(claim, "not tried", "the agent to be killed did not start")
        for _ in range(100):
            if not running(mark):
                return Verdict(claim, "holds")
            await asyncio.sleep(0.02)
    return Verdict(claim, "fails", f"sleep {mark} still runs")


def running(mark: str) -> bool:
    """Whether a process with `mark` as an argument runs on this machine; a zombie has none any more."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    if mark.encode() in file.read().split(b"\0"):
                        return True
            except OSError:
                continue
    return False
