"""What the library of each channel costs a gateway that uses it: CPU of its import, memory it holds."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

from bench.report import Figure, Report, median

LIBRARIES = {
    "telegram, discord, slack": ("aiohttp",),
    "irc": (),
    "matrix": ("aiohttp", "nio"),
    "xmpp": ("slixmpp",),
    "mqtt": ("aiomqtt",),
    "email": ("aioimaplib", "aiosmtplib"),
    "notify": ("apprise",),
    "server (web)": ("starlette.applications", "uvicorn", "websockets.asyncio.server"),
}
"""By kind; `aiohttp` is also what models are asked with."""
CODE = """
import os, time
def held():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
import asyncio, ssl, json, logging, limpet.household
memory, cpu = held(), time.process_time()
for name in {names!r}:
    __import__(name)
print((time.process_time() - cpu) * 1000, (held() - memory) / 1e6)
"""


def measure(*, quick: bool) -> Report:
    """Each in processes of its own, over what the gateway itself has loaded. Linux only (/proc)."""
    figures: list[Figure] = []
    left_out: list[str] = []
    for kind, names in LIBRARIES.items():
        if any(importlib.util.find_spec(name.partition(".")[0]) is None for name in names):
            left_out.append(kind)
            continue
        found = [_import(names) for _ in range(1 if quick else 5)]
        figures.append(Figure(kind, "import", median([cpu for cpu, _ in found]), "ms CPU"))
        figures.append(Figure(kind, "memory", median([memory for _, memory in found]), "MB"))
    notes = ["over a gateway without channels; a channel's connections and what it remembers come on top"]
    notes += [f"not installed: {', '.join(left_out)}"] if left_out else []
    return Report("Libraries of channels", figures, notes)


def _import(names: tuple[str, ...]) -> tuple[float, float]:
    """Milliseconds, MB."""
    code = CODE.format(names=names)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, capture_output=True, text=True)
    cpu, memory = done.stdout.split()
    return float(cpu), float(memory)
