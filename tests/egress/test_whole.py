"""The whole program with an allow-list: a command reaches the granted host, and the value is nowhere else."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from limpet.sandbox.run import Sandbox
from limpet.testing.fakes.openai import FakeOpenAI
from limpet.testing.fakes.script import Call, Reply, Seen
from tests.cli.program import at, limpet
from tests.egress.parts import VALUE, canary
from tests.skills.folders import skill

REPORT = Sandbox().report
GIVEN = "given-to-commands-77"


@pytest.mark.skipif(REPORT.kind == "none", reason=f"no sandbox: {REPORT.reason}")
def test_c65_a_granted_secret_reaches_its_host_and_nothing_else(tmp_path: Path) -> None:
    async def main() -> tuple[bytes, str]:
        async with canary() as bird, canary(host="127.0.0.2") as other:
            there = f"127.0.0.1:{bird.port}"
            (tmp_path / "config.toml").write_text(
                f'[net]\nallow_cidrs = ["127.0.0.0/8"]\n[tools.exec]\nnetwork = "allow-list"\n'
                f'secrets = {{ GIVEN = "secret:given" }}\n'
                f'[egress.secrets.KEY]\nsecret = "secret:search"\nhosts = ["{there}"]\n'
            )
            for name, value in (("search", VALUE), ("given", GIVEN)):
                await limpet(tmp_path, "secrets", "set", name, stdin=value.encode())
            lines = f'export NO_PROXY= no_proxy=; env; echo $GIVEN; curl -sS -H "X-Key: $KEY" http://{there}/;'
            lines += f' curl -sS -H "X-Key: $KEY" http://127.0.0.2:{other.port}/'

            def script(seen: Seen) -> Reply:
                if seen.raw.decode().rpartition('"role":"')[2].startswith("tool"):
                    return Reply(text=("done",))
                return Reply(calls=(Call("exec", json.dumps({"command": lines})),))

            async with FakeOpenAI(script) as server:
                ended = await limpet(tmp_path, "--verbose", "agent", "-m", "go", "--json", **at(server))
                said = ended.out + ended.err + b"".join(seen.raw for seen in server.requests).decode()
            assert other.visits == 0
            return b"".join(bird.heard), said

    heard, said = asyncio.run(main())
    assert f"X-Key: {VALUE}".encode() in heard, said
    files = "".join(path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file())
    assert [value for value in (VALUE, GIVEN) if value in said + files] == []
    assert "[secret:given]" in said
    assert "egress.hosts" in said


@pytest.mark.skipif(REPORT.kind == "none", reason=f"no sandbox: {REPORT.reason}")
def test_what_was_granted_to_a_skill_reaches_the_proxy_and_goes_with_the_grant(tmp_path: Path) -> None:
    async def main() -> tuple[bytes, bytes]:
        async with canary() as bird:
            there = f"127.0.0.1:{bird.port}"
            needs = f"metadata: {{limpet: {{needs: {{hosts: ['{there}'], secrets: [KEY]}}}}}}"
            skill(tmp_path / "workspace/skills", "tea", f"---\nname: tea\ndescription: x\n{needs}\n---\nX")
            (tmp_path / "config.toml").write_text(
                '[net]\nallow_cidrs = ["127.0.0.0/8"]\n[tools.exec]\nnetwork = "allow-list"\n'
            )
            await limpet(tmp_path, "secrets", "set", "KEY", stdin=VALUE.encode())
            line = f'export NO_PROXY= no_proxy=; curl -sS -H "X-Key: $KEY" http://{there}/'

            def script(seen: Seen) -> Reply:
                if seen.raw.decode().rpartition('"role":"')[2].startswith("tool"):
                    return Reply(text=("done",))
                return Reply(calls=(Call("exec", json.dumps({"command": line})),))

            async def heard(session: str) -> bytes:
                async with FakeOpenAI(script) as server:
                    await limpet(tmp_path, "agent", "--session", session, "-m", "go", **at(server))
                return b"".join(bird.heard)

            before = await heard("before")
            granted = await limpet(tmp_path, "skills", "grant", "tea", "--yes")
            assert granted.code == 0, granted.err
            return before, await heard("after")

    before, heard = asyncio.run(main())
    assert before == b""
    assert f"X-Key: {VALUE}".encode() in heard
