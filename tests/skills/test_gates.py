"""What a skill lacks here."""

from __future__ import annotations

from limpet.skills.gates import Situation, missing
from limpet.skills.skill import Gates

HERE = Situation(
    env=("KEY",),
    setting=lambda key: key == "net.proxy",
    has_tool=lambda name: name == "exec",
    platform="darwin",
    which=lambda name: name if name in ("git", "sh") else None,
)


def test_everything_there_is_nothing_missing() -> None:
    gates = Gates(
        os=("macos", "linux"),
        bins=("git",),
        any_bins=("zsh", "sh"),
        env=("KEY",),
        config=("net.proxy",),
        tools=("exec",),
    )
    assert missing(gates, HERE) == ()


def test_each_thing_missing_is_named() -> None:
    gates = Gates(os=("win32",), bins=("a",), any_bins=("b", "c"), env=("E",), config=("x.y",), tools=("cron",))
    assert missing(gates, HERE) == ("os:win32", "bin:a", "bin:b|c", "env:E", "config:x.y", "tool:cron")


def test_a_skill_may_skip_its_gates_but_not_the_system() -> None:
    assert missing(Gates(os=("linux",), bins=("a",), skipped=True), HERE) == ("os:linux",)
