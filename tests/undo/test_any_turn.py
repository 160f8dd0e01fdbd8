"""Whatever a turn does to a workspace: taking it back gives the exact tree, and taking that back the other one."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.undo.ground import Ground, picture

NAMES = ("a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "é\n", "d/e/f/g")
MODES = (0o644, 0o600, 0o755, 0o444, 0o700, 0o555)
ACTS = ("write", "append", "delete", "mkdir", "chmod", "link", "rename", "touch")

Act = tuple[str, str, str, int]
acts = st.lists(
    st.tuples(st.sampled_from(ACTS), st.sampled_from(NAMES), st.sampled_from(NAMES), st.integers(0, 5)), max_size=12
)


def clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif path.is_symlink() or path.exists():
        path.unlink()


def act(place: Path, kind: str, name: str, other: str, number: int) -> None:
    """One thing that a command may do; what is not possible does nothing. No link leads out of `place`."""
    path = place / name
    try:
        if kind == "write":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(bytes([number]) * number)
        elif kind == "append":
            with open(path, "ab") as file:
                file.write(b"more\n")
        elif kind == "delete":
            clear(path)
        elif kind == "mkdir":
            path.mkdir(parents=True)
        elif kind == "chmod":
            path.chmod(MODES[number] | (0o500 if path.is_dir() else 0))  # a folder that nobody may enter cannot be seen
        elif kind == "link":
            clear(path)
            path.symlink_to(other if number % 2 else "nowhere/at/all")
        elif kind == "rename":
            os.rename(path, place / other)
        else:
            os.utime(path)
    except OSError:
        pass


@settings(max_examples=60, deadline=None)
@given(before=acts, during=acts, seed=st.integers(0, 5))
def test_a_rollback_gives_the_tree_before_and_its_own_the_tree_after(
    before: list[Act], during: list[Act], seed: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ground = Ground(Path(folder))
        for one in before:
            act(ground.place, *one)
        was = picture(ground.place)
        files = [one for one in during if one[0] in ("write", "append") and not _through_link(ground.place, one[1])]
        if files and random.Random(seed).random() < 0.5:  # a file tool comes first
            ground.file(files[0][1])
            act(ground.place, *files[0])
        ground.command()
        for one in during:
            act(ground.place, *one)
        ground.finish()
        became = picture(ground.place)
        assert ground.take_back() == []
        assert picture(ground.place) == was
        assert ground.take_back("r1", mark="r2") == []
        assert picture(ground.place) == became
        ground.keeper.close()


def _through_link(place: Path, name: str) -> bool:
    """Whether a path leads over a link: file tools name the place that it leads to instead."""
    path = place / name
    return any(one.is_symlink() for one in (path, *path.parents))
