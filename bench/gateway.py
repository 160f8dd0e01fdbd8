"""The gateway: how soon it is ready, what it costs idle, how many turns it does, how long people wait."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from bench.fake import ROOT, Fake, environment, fake, folder
from bench.report import Figure, Report
from bench.soak import soak

READY, IDLE_MB, IDLE_CPU, RATE, P95, GROWN = 1.0, 60.0, 0.3, 150.0, 1.0, 10.0
"""Goals: seconds, MB, % of a core; turns a second that one core's CPU would do, seconds at 100 turns a second; MB."""
SESSIONS = 64
PACED = 100


def measure(*, quick: bool) -> Report:
    """A real gateway with its server, then one with a channel that only measures; the fake model is a process apart."""
    seconds = 2.0 if quick else 20.0
    figures: list[Figure] = []
    with fake() as server, folder() as home:
        home.mkdir(exist_ok=True)
        figures += _idle(home, server, seconds)
        for mode, rate in (("burst", 0), ("paced", PACED if not quick else 10)):
            figures += _load(home, server, mode, seconds=seconds, rate=rate)
        figures += _soak(200 if quick else 10_000)
    notes = [
        f"idle: `limpet gateway` with its WebSocket server (and devices on a broker), over {seconds:.0f} s",
        "ready: from its start until /readyz says so",
        f"burst: {SESSIONS} sessions, each says the next thing when the last is answered; CPU of the gateway's process",
        "alone, all threads; turns a second of one core: 1 / CPU of a turn, from its message to the delivered answer",
    ]
    return Report("The gateway", figures, notes)


def _idle(home: Path, server: Fake, seconds: float) -> list[Figure]:
    """With the WebSocket server and, where there is a broker, the channel `mqtt`."""
    with _broker() as broker, _free() as free:
        port = int(free.getsockname()[1])
        free.close()
        env = environment(home, server, LIMPET_GATEWAY__PORT=str(port))
        command = [sys.executable, "-m", "limpet", "gateway"]
        subprocess.run([*command, "--once"], env=env, cwd=ROOT, check=True, capture_output=True)
        if broker:
            (home / "limpet" / "config.toml").write_text(
                f'[channels.mqtt.home]\nhost = "127.0.0.1"\nport = {broker}\nowners = ["lamp"]\n'
            )
        began, null = time.perf_counter(), subprocess.DEVNULL
        process = subprocess.Popen(command, env=env, cwd=ROOT, stdout=null, stderr=null)
        try:
            while not _is_ready(port):
                time.sleep(0.01)
            ready = time.perf_counter() - began
            time.sleep(3.0)
            before = _cpu(process.pid)
            time.sleep(seconds)
            used = (_cpu(process.pid) - before) / seconds * 100
            memory = _resident(process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(15)
            (home / "limpet" / "config.toml").unlink(missing_ok=True)
    name = "idle, WebSocket and MQTT" if broker else "idle, WebSocket"
    return [
        Figure(name, "ready", ready, "s", READY),
        Figure(name, "memory", memory, "MB", IDLE_MB),
        Figure(name, "CPU", used, "%", IDLE_CPU),
    ]


def _free() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


@contextmanager
def _broker() -> Generator[int]:
    """The port of a mosquitto for the length of the block; 0 where there is none."""
    program = shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        yield 0
        return
    with folder() as place, _free() as free:
        port = int(free.getsockname()[1])
        free.close()
        (place / "m.conf").write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n")
        null = subprocess.DEVNULL
        process = subprocess.Popen([program, "-c", str(place / "m.conf")], stdout=null, stderr=null)
        try:
            yield port
        finally:
            process.terminate()
            process.wait(10)


def _load(home: Path, server: Fake, mode: str, *, seconds: float, rate: int) -> list[Figure]:
    env = environment(home, server, LIMPET_GATEWAY__PORT="0", LIMPET_GATEWAY__TURNS=str(SESSIONS))
    command = [sys.executable, "-m", "bench.gateway_child", mode, str(SESSIONS), str(seconds), str(rate)]
    done = subprocess.run(command, env=env, cwd=ROOT, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    cost = found["cpu"] / found["turns"]
    name = mode if mode == "burst" else f"{rate} turns/s"
    is_burst = mode == "burst"
    return [
        Figure(name, "turns/s", found["turns"] / found["wall"], ""),
        Figure(name, "of one core", 1 / cost, "turns/s", floor=RATE if is_burst else None),
        Figure(name, "CPU a turn", cost * 1000, "ms"),
        Figure(name, "p50", found["p50"], "s"),
        Figure(name, "p95", found["p95"], "s", None if is_burst else P95),
        Figure(name, "memory", found["rss"] / 1e6, "MB"),
    ]


def _soak(messages: int) -> list[Figure]:
    grown = soak(messages)["grown"]
    return [
        Figure(f"soak, {messages:,} messages", "grown", grown["bytes"] / 1e6, "MB", GROWN),
        Figure(f"soak, {messages:,} messages", "files", grown["files"], "more"),
        Figure(f"soak, {messages:,} messages", "tasks", grown["tasks"], "more"),
    ]


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return answer.status == 200
    except (OSError, urllib.error.URLError):
        return False


def _cpu(process: int) -> float:
    """Seconds."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident(process: int) -> float:
    """MB."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
