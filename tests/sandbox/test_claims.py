"""The claims hold here, and an attempt that gets through is seen."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from limpet.sandbox.claims import ATTEMPTS, Verdict, attempt, examine_all, ground
from limpet.sandbox.limits import Limits
from limpet.sandbox.network import Network
from limpet.sandbox.run import Sandbox

REPORT = Sandbox().report
needs_sandbox = pytest.mark.skipif(REPORT.kind == "none", reason=f"no sandbox: {REPORT.reason}")


@needs_sandbox
def test_every_claim_holds_here() -> None:
    verdicts = asyncio.run(examine_all())
    assert len(verdicts) == len(ATTEMPTS) + 1
    assert [one for one in verdicts if one.state != "holds"] == []


@needs_sandbox
@pytest.mark.parametrize(
    ("claim", "weaker"),
    [
        ("there is no network", {"network": Network("open")}),
        ("memory is limited", {"limits": Limits(memory=0), "timeout": 0.5}),
        ("the size of files is limited", {"limits": Limits(file_size=0)}),
        ("files outside cannot be read", {"command": "echo tried outside-4711"}),
        ("when time is over everything ends", {"command": "true"}),
    ],
)
def test_a_claim_that_does_not_hold_is_said(claim: str, weaker: dict[str, object]) -> None:
    one = next(one for one in ATTEMPTS if one.claim == claim)

    async def main() -> Verdict:
        async with ground() as place:
            return await attempt(msgspec.structs.replace(one, **weaker), place)

    verdict = asyncio.run(main())
    assert (verdict.claim, verdict.state) == (claim, "fails")
    assert verdict.said


def test_claims_have_names_of_their_own() -> None:
    assert len({one.claim for one in ATTEMPTS}) == len(ATTEMPTS)
