"""The profile for macOS, as far as it can be looked at without a Mac: it is well formed, and denies by default."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.errors import SandboxError
from limpet.sandbox.seatbelt import profile


def words(text: str) -> list[str]:
    """The parts of a profile: brackets, strings (with their escapes), and symbols. Fails on anything else."""
    found = re.findall(r'[()]|"(?:\\.|[^"\\])*"|[^\s()"]+|\s+', text)
    assert "".join(found) == text
    return [word for word in found if word.strip()]


def depths(text: str) -> list[int]:
    depth, found = 0, []
    for word in words(text):
        depth += {"(": 1, ")": -1}.get(word, 0)
        found.append(depth)
    return found


paths = st.text(alphabet='ab /()"\\;#é', max_size=12).map(lambda name: f"/{name}")


@given(paths, st.lists(paths, max_size=3))
def test_it_is_balanced_whatever_the_paths_are(workspace: str, others: list[str]) -> None:
    text = profile(workspace, hidden=tuple(others), readonly=tuple(others))
    assert min(depths(text)) == 0
    assert depths(text)[-1] == 0
    strings = [word for word in words(text) if word.startswith('"')]
    shown = {re.sub(r"\\(.)", r"\1", one[1:-1]) for one in strings}
    assert {workspace, *others} <= shown


def test_it_denies_first_and_what_is_hidden_last() -> None:
    lines = profile("/w", hidden=("/w/.state",), readonly=("/w/AGENTS.md",)).splitlines()
    assert lines[:2] == ["(version 1)", "(deny default)"]
    writable = next(at for at, line in enumerate(lines) if line.startswith('(allow file-write* (subpath "/w"'))
    assert lines.index('(deny file-write* (subpath "/w/AGENTS.md"))') > writable
    assert lines.index('(deny file-read* file-write* (subpath "/w/.state"))') > writable
    assert lines[-1] == "(deny network*)"


@pytest.mark.parametrize("path", ["relative", "/with\nbreak", "/with\0zero"])
def test_a_path_it_cannot_hold_is_refused(path: str) -> None:
    with pytest.raises(SandboxError):
        profile(path)
