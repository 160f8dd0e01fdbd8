"""Real commands in a real sandbox behind the proxy."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from limpet.egress.proxy import Egress
from limpet.sandbox.bubblewrap import search_path
from limpet.sandbox.run import Job, Sandbox
from tests.egress.parts import VALUE, canary, granted, proxy

REPORT = Sandbox().report
pytestmark = [
    pytest.mark.skipif(REPORT.kind == "none", reason=f"no sandbox: {REPORT.reason}"),
    pytest.mark.skipif(shutil.which("curl") is None, reason="no curl"),
]


async def command(egress: Egress, workspace: Path, line: str) -> str:
    workspace.mkdir(exist_ok=True)
    out = bytearray()
    job = Job(line, str(workspace), str(workspace), {"PATH": search_path()}, timeout=30, network=egress.network)
    async with Sandbox(hidden=(str(workspace.parent),)) as sandbox:
        await sandbox.run(job, out.extend)
    return out.decode()


PYTHON = """python3 - <<'END'
import os, urllib.request
request = urllib.request.Request("{url}", headers={{"Authorization": "Bearer " + os.environ["SEARCH_KEY"]}})
print(urllib.request.urlopen(request).read().decode())
END
"""


def test_curl_and_python_reach_the_granted_host_and_never_see_the_value(tmp_path: Path) -> None:
    async def main() -> tuple[str, bytes]:
        async with canary(secure=True) as bird:
            there = f"127.0.0.1:{bird.port}"
            async with proxy(tmp_path, grants=[granted(there)]) as egress:
                curl = f'curl -sS "https://{there}/?q=$SEARCH_KEY" -H "Authorization: Bearer $SEARCH_KEY" --data x=y'
                lines = ("env; unset NO_PROXY no_proxy", curl, PYTHON.format(url=f"https://{there}/"))
                said = await command(egress, tmp_path / "w", "; ".join(lines))
            return said, b"".join(bird.heard)

    said, heard = asyncio.run(main())
    assert heard.count(f"Bearer {VALUE}".encode()) == 2, said
    assert f"/?q={VALUE} ".encode() in heard
    assert said.count("[secret:SEARCH_KEY]") == 3, said
    assert VALUE not in said


def test_nothing_else_is_reached_by_any_way(tmp_path: Path) -> None:
    async def main() -> tuple[str, int]:
        async with canary() as bird, proxy(tmp_path, "example.invalid") as egress:
            there = f"127.0.0.1:{bird.port}"
            lines = (
                f"curl -sS -x '' --noproxy '*' -m 3 http://{there}/",
                f"curl -sS -m 3 --noproxy '' http://{there}/",
                f"curl -sS -m 3 --noproxy '' -p https://{there}/",
                f"curl -sS -m 3 --unix-socket /run/limpet/door.sock http://{there}/",
                "curl -sS -m 3 http://1.1.1.1/; getent hosts example.com",
            )
            return await command(egress, tmp_path / "w", "; ".join(lines)), bird.visits

    said, visits = asyncio.run(main())
    assert visits == 0
    assert "egress.hosts" in said


def test_the_keys_of_the_proxy_are_out_of_sight(tmp_path: Path) -> None:
    async def main() -> str:
        async with proxy(tmp_path, grants=[granted("example.org")]) as egress:
            look = "ls /run/limpet; grep -rl PRIVATE /run /tmp /proc/*/environ; echo > /run/limpet/roots.pem"
            return await command(egress, tmp_path / "w", look)

    said = asyncio.run(main())
    assert said.splitlines()[:2] == ["__pycache__", "door.py"]
    assert "PRIVATE" not in said
    assert "Read-only file system" in said or "cannot create" in said


def test_many_connections_at_once(tmp_path: Path) -> None:
    async def main() -> str:
        async with canary() as bird, proxy(tmp_path, f"127.0.0.1:{bird.port}") as egress:
            url = f"http://127.0.0.1:{bird.port}/"
            each = f"curl -sS --noproxy '' -o /dev/null -w '%{{http_code}}\\n' {url} &"
            return await command(egress, tmp_path / "w", each * 12 + " wait")

    assert asyncio.run(main()).split() == ["200"] * 12
