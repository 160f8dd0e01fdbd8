"""Synapse for the tests of a process: it takes ten seconds to start, so all of them share one."""

from __future__ import annotations

import atexit
import base64
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from functools import cache
from pathlib import Path

import pytest

from tests.channel.server import free_port

_MANY = {"per_second": 1000, "burst_count": 1000}


@cache
def synapse() -> int:
    """Its port. The test is skipped where Synapse is not installed (extra `servers`)."""
    if importlib.util.find_spec("synapse") is None:
        pytest.skip("matrix-synapse is not installed (extra servers)")
    folder, port = Path(tempfile.mkdtemp(prefix="limpet-synapse-")), free_port()
    key = base64.b64encode(os.urandom(32)).decode().rstrip("=")
    (folder / "signing.key").write_text(f"ed25519 a_test {key}\n")
    (folder / "homeserver.json").write_text(json.dumps(_configuration(folder, port)))
    argv = [sys.executable, "-m", "synapse.app.homeserver", "-c", str(folder / "homeserver.json")]
    if shutil.which("setpriv"):
        argv = ["setpriv", "--pdeathsig", "KILL", *argv]  # ended even when this process is killed
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    atexit.register(_end, process, folder)
    until = time.monotonic() + 100
    while not _well(port):
        assert process.poll() is None, (folder / "log").read_text("utf-8", "replace")[-3_000:]
        assert time.monotonic() < until, "Synapse does not start"
        time.sleep(0.1)
    return port


def _configuration(folder: Path, port: int) -> dict[str, object]:
    listener = {"port": port, "bind_addresses": ["127.0.0.1"], "type": "http", "tls": False}
    return {
        "server_name": "localhost",
        "listeners": [{**listener, "resources": [{"names": ["client"], "compress": False}]}],
        "database": {"name": "sqlite3", "args": {"database": str(folder / "homeserver.db")}},
        "media_store_path": str(folder / "media"),
        "signing_key_path": str(folder / "signing.key"),
        "pid_file": str(folder / "pid"),
        "macaroon_secret_key": "only for tests",
        "report_stats": False,
        "trusted_key_servers": [],
        "enable_registration": True,
        "enable_registration_without_verification": True,
        "bcrypt_rounds": 4,
        "presence": {"enabled": False},
        "rc_message": _MANY,
        "rc_registration": _MANY,
        "rc_login": {"address": _MANY, "account": _MANY, "failed_attempts": _MANY},
        "rc_joins": {"local": _MANY, "remote": _MANY},
        "rc_joins_per_room": _MANY,
        "rc_invites": {"per_room": _MANY, "per_user": _MANY, "per_issuer": _MANY},
        "rc_room_creation": _MANY,
    }


def _well(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


def _end(process: subprocess.Popen[bytes], folder: Path) -> None:
    process.kill()
    process.wait()
    shutil.rmtree(folder, ignore_errors=True)
