"""Synapse for the tests of a run. It takes ten seconds to start and is no child of the tests: some count those.

`python -m tests.channel.synapse COMMAND …` runs a command beside one, with the Python of `.venv-servers`.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.channel.server import free_port

VARIABLE = "LIMPET_TEST_SYNAPSE"
PYTHON = Path(__file__).resolve().parents[2] / ".venv-servers" / "bin" / "python"
PATIENCE = 100.0
"""Seconds to start in."""
_MANY = {"per_second": 1000, "burst_count": 1000}


def synapse() -> int:
    """Its port. The test is skipped where the run has none."""
    port = os.environ.get(VARIABLE, "")
    if not port:
        pytest.skip("no Synapse runs beside the tests (make test-servers)")
    return int(port)


@contextlib.contextmanager
def served() -> Generator[int]:
    """One that runs until the block ends; its port. Raises `RuntimeError` when it does not start."""
    with tempfile.TemporaryDirectory(prefix="limpet-synapse-") as name:
        folder, port = Path(name), free_port()
        key = base64.b64encode(os.urandom(32)).decode().rstrip("=")
        (folder / "signing.key").write_text(f"ed25519 a_test {key}\n")
        (folder / "homeserver.json").write_text(json.dumps(_configuration(folder, port)))
        argv = [PYTHON, "-m", "synapse.app.homeserver", "-c", str(folder / "homeserver.json")]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            until = time.monotonic() + PATIENCE
            while not _well(port):
                if process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError((folder / "log").read_text("utf-8", "replace")[-3_000:])
                time.sleep(0.1)
            yield port
        finally:
            process.kill()
            process.wait()


def main() -> int:
    """Run the command that the arguments are; what it ends with. Without Synapse it runs all the same."""
    if not PYTHON.exists():
        print(f"{PYTHON.parent.parent.name} is not there (make servers): without Synapse", file=sys.stderr)
        return subprocess.run(sys.argv[1:], check=False).returncode
    with served() as port:
        return subprocess.run(sys.argv[1:], check=False, env={**os.environ, VARIABLE: str(port)}).returncode


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


if __name__ == "__main__":
    sys.exit(main())
