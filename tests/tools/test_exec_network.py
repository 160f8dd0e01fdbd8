"""A command with a network can carry words out and bring strangers' in: the taint rule has to know."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Literal

import pytest

from limpet.sandbox.network import Network
from limpet.sandbox.run import Sandbox
from limpet.testing.context import tool_context
from limpet.tools.exec import ExecSettings, make_exec

REPORT = Sandbox().report


@pytest.mark.skipif(REPORT.kind == "none", reason=f"no sandbox: {REPORT.reason}")
@pytest.mark.parametrize(("kind", "trust"), [("none", "tool"), ("open", "external")])
def test_what_a_command_with_a_network_says_is_from_outside(
    tmp_path: Path, kind: Literal["none", "open"], trust: str
) -> None:
    async def main() -> tuple[bool, str]:
        async with Sandbox() as sandbox:
            tool = make_exec(sandbox, ExecSettings(network=Network(kind)))
            bound = tool.bind('{"command":"echo hi"}', workspace=str(tmp_path))
            return bound.sends, (await bound.run(tool_context(tmp_path))).trust

    assert asyncio.run(main()) == (kind != "none", trust)
