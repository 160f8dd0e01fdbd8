"""Control groups, on folders that look like the kernel's: the real ones are used by `test_run` where they exist."""

from pathlib import Path

import pytest

from limpet.sandbox.cgroup import Group, Parents, find
from limpet.sandbox.limits import Limits, holding


@pytest.fixture
def mount(tmp_path):
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    (tmp_path / "app" / "main").mkdir(parents=True)
    (tmp_path / "app" / "cgroup.subtree_control").write_text("memory pids\n")
    (tmp_path / "app" / "main" / "cgroup.subtree_control").write_text("\n")
    return tmp_path


def test_version_2_takes_the_delegated_parent(mount):
    assert find([["0", "", "/app/main"]], mount=str(mount)) == Parents(2, (str(mount / "app"),))


def test_version_2_without_the_controllers_is_not_used(mount):
    (mount / "app" / "cgroup.subtree_control").write_text("cpu\n")
    assert find([["0", "", "/app/main"]], mount=str(mount)) is None


def test_version_1_needs_both_controllers(tmp_path):
    for name in ("memory/a", "pids"):
        (tmp_path / name).mkdir(parents=True)
    lines = [["4", "memory", "/a"], ["8", "pids", "/"], ["0", "", "/"]]
    assert find(lines, mount=str(tmp_path)) == Parents(1, (str(tmp_path / "memory/a"), str(tmp_path / "pids")))
    assert find(lines[:1], mount=str(tmp_path)) is None


def test_group_of_version_2_has_the_limits_and_says_what_passed(tmp_path):
    group = Group(Parents(2, (str(tmp_path),)), Limits(memory=100 * 1024**2, processes=10))
    folder = next(tmp_path.iterdir())
    assert int((folder / "memory.max").read_text()) == 132 * 1024**2
    assert (folder / "memory.swap.max").read_text() == "0"
    assert int((folder / "pids.max").read_text()) == 48
    assert group.passed() == ""
    (folder / "memory.events").write_text("low 0\noom 1\noom_kill 1\n")
    assert group.passed() == "memory"
    assert group.prefix()[-1] == str(folder)


def test_an_empty_group_is_removed(tmp_path):
    group = Group(Parents(2, (str(tmp_path),)), Limits(memory=0, processes=0))
    group.remove()
    assert list(tmp_path.iterdir()) == []


def test_what_holds_is_said_in_words():
    assert any("control group (version 2)" in line for line in holding(sandboxed=True, cgroup=2))
    watched = holding(sandboxed=False)
    assert any(("watch" in line) == Path("/proc/self").exists() for line in watched if line.startswith("memory"))
