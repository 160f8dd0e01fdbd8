import asyncio
import sys

import pytest

from limpet.sandbox import bubblewrap
from limpet.sandbox.limits import Limits
from limpet.sandbox.probe import examine, probe


def test_report_says_why_there_is_none_and_what_to_do():
    report = examine(enabled=False)
    assert report.kind == "none"
    assert report.reason
    assert report.remedy
    assert report.limits


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")
def test_a_bubblewrap_that_fails_is_reported_with_its_words(tmp_path):
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    report = examine(candidates=[str(broken)])
    assert report.kind == "none"
    assert "No permissions to create a new namespace" in report.reason
    assert report.remedy


def test_without_any_bubblewrap_it_says_how_to_get_one():
    assert "apt install bubblewrap" in examine(candidates=[]).remedy


def test_probe_gives_the_same_as_examine():
    assert asyncio.run(probe()) == examine()


def test_order_of_mounts_keeps_a_workspace_under_tmp_visible():
    argv = bubblewrap.arguments("bwrap", workspace="/tmp/w", folder="/tmp/w", limits=Limits())
    assert argv.index("/tmp") < argv.index("/tmp/w")
    for flag in ("--unshare-all", "--die-with-parent", "--new-session"):
        assert flag in argv
