"""A server in the sandbox: it can write the workspace only, and gets only its own variables."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from limpet.mcp.kept import Records
from limpet.mcp.sdk import Answer
from limpet.mcp.server import Server
from limpet.mcp.spec import ServerSpec, program_of
from limpet.sandbox.bubblewrap import interpreter
from limpet.sandbox.probe import examine
from limpet.testing.clock import FakeClock
from limpet.testing.mcp import PROGRAM, FakeServer

pytestmark = pytest.mark.skipif(examine().kind != "bubblewrap", reason="there is no bubblewrap here")


def isolated(folder: Path) -> ServerSpec:
    fake = FakeServer(folder / "work", ["touch", "env"])
    return ServerSpec(
        name="fake",
        command=interpreter(),
        args=fake.args,
        env={"KEY": "s3cret"},
        sandbox=True,
        reads=(str(PROGRAM.parent),),
        workspace=str(folder / "work"),
        home=str(folder),
    )


def called(folder: Path, tool: str, **arguments: object) -> Answer:
    async def run() -> Answer:
        server = Server(isolated(folder), Records(folder), clock=FakeClock())
        try:
            return await server.call(tool, arguments, progress=print)
        finally:
            await server.close()

    return asyncio.run(run())


def test_it_writes_the_workspace_and_nothing_else(tmp_path: Path) -> None:
    assert called(tmp_path, "touch", path=str(tmp_path / "work" / "in")).content[0].text == "touched"
    assert (tmp_path / "work" / "in").exists()
    assert called(tmp_path, "touch", path=str(PROGRAM.parent / "out")).is_error
    called(tmp_path, "touch", path=str(tmp_path / "out"))  # at the most into its private /tmp
    assert not (tmp_path / "out").exists()


def test_it_gets_its_variables_but_not_by_arguments_that_others_can_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "s3cret")
    assert set(called(tmp_path, "env").content[0].text.split()) <= {"KEY", "HOME", "TMPDIR", "PWD", "LC_CTYPE"}
    assert "s3cret" not in " ".join(program_of(isolated(tmp_path)).argv)


def test_it_has_no_network_unless_that_is_open(tmp_path: Path) -> None:
    assert "--share-net" not in program_of(isolated(tmp_path)).argv
