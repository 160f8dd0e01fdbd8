import os
import socket
import tempfile
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limpet.errors import PathRefusedError, ToolError
from limpet.tools.paths import Root, read_bytes


@pytest.fixture
def space(tmp_path):
    root = tmp_path / "w"
    (root / "sub").mkdir(parents=True)
    (root / "a.txt").write_text("A")
    (root / "sub" / "b.txt").write_text("B")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "s.txt").write_text("SECRET")
    return root


def find(space, path, **options):
    with Root(str(space)) as root:
        spot = root.find(path, **options)
        return spot.relative, spot.kind


@pytest.mark.parametrize(
    ("path", "relative"),
    [
        ("a.txt", "a.txt"),
        ("./sub//b.txt", "sub/b.txt"),
        ("sub/../a.txt", "a.txt"),
        ("@a.txt", "a.txt"),
    ],
)
def test_plain_paths(space, path, relative):
    assert find(space, path) == (relative, "file")


def test_absolute_path_inside(space):
    assert find(space, f"{space}/sub/b.txt") == ("sub/b.txt", "file")
    assert find(space, str(space)) == (".", "folder")


def test_workspace_behind_a_link(space, tmp_path):
    (tmp_path / "door").symlink_to("w")
    with Root(str(tmp_path / "door")) as root:
        assert root.find(f"{tmp_path}/door/a.txt").path == f"{space.resolve()}/a.txt"


def test_links_that_stay_inside_work(space):
    (space / "rel").symlink_to("sub")
    (space / "sub" / "up").symlink_to("../a.txt")
    (space / "abs").symlink_to(space / "sub")
    assert find(space, "rel/b.txt") == ("sub/b.txt", "file")
    assert find(space, "rel/up") == ("a.txt", "file")
    assert find(space, "abs/b.txt") == ("sub/b.txt", "file")


@pytest.mark.parametrize("target", ["../out", "../out/s.txt", "/etc/passwd", "sub/../../out/s.txt", "..", "../w2"])
def test_links_that_lead_out_are_refused(space, target):
    (space / "link").symlink_to(target)
    with pytest.raises(PathRefusedError, match="outside the workspace"):
        find(space, "link")


def test_links_in_a_circle_are_refused(space):
    (space / "x").symlink_to("y")
    (space / "y").symlink_to("x")
    with pytest.raises(PathRefusedError, match="too many links"):
        find(space, "x/z")


@pytest.mark.parametrize("path", ["", " ", "a\x00b", "a\nb", "\x7f", "\ud800"])
def test_texts_that_are_no_paths(space, path):
    with pytest.raises(PathRefusedError):
        find(space, path)


def test_special_files_are_refused(space):
    os.mkfifo(space / "pipe")
    with socket.socket(socket.AF_UNIX) as listener, tempfile.TemporaryDirectory() as short:
        listener.bind(f"{short}/s")
        os.rename(f"{short}/s", space / "sock")
        for name in ("pipe", "sock"):
            with pytest.raises(PathRefusedError, match="not a regular file"):
                find(space, name)


def test_file_as_a_folder(space):
    for path in ("a.txt/x", "a.txt/"):
        with pytest.raises(ToolError, match="not a folder"):
            find(space, path)


def test_names_as_mac_and_chats_write_them(space):
    (space / "Shot 9.41\u202fAM.png").write_text("")
    (space / "cafe\u0301.txt").write_text("")
    (space / "it\u2019s.txt").write_text("")
    assert find(space, "Shot 9.41 AM.png", reading=True)[1] == "file"
    assert find(space, "caf\u00e9.txt", reading=True)[1] == "file"
    assert find(space, "it's.txt", reading=True)[1] == "file"
    assert find(space, "a\u00a0.txt", reading=True)[1] == "missing"
    assert find(space, "it's.txt")[1] == "missing"


def test_own_state_is_no_target(space):
    (space / ".limpet").mkdir()
    (space / "trick").symlink_to(".limpet")
    with Root(str(space)) as root:
        for path in (".limpet", ".limpet/x", "trick/x", "sub/../.limpet/x"):
            with pytest.raises(PathRefusedError, match="own state"):
                root.target(path)


def test_descriptors_are_given_back(space):
    before = len(os.listdir("/proc/self/fd"))
    for path in ("sub/b.txt", "../x", "sub/new/deep"):
        try:
            find(space, path)
        except PathRefusedError:
            continue
    assert len(os.listdir("/proc/self/fd")) == before


def test_folder_swapped_for_a_link_meanwhile(space, tmp_path):
    """The hard case: a folder that becomes a link outside, again and again, while a file in it is read."""
    (space / "real").mkdir()
    (space / "real" / "s.txt").write_text("INSIDE")
    (tmp_path / "evil").symlink_to(tmp_path / "out")
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            os.rename(space / "real", tmp_path / "parked")
            os.rename(tmp_path / "evil", space / "real")
            os.rename(space / "real", tmp_path / "evil")
            os.rename(tmp_path / "parked", space / "real")

    thread = threading.Thread(target=swap)
    thread.start()
    seen = set()
    try:
        for _ in range(800):
            try:
                with Root(str(space)) as root:
                    spot = root.find("real/s.txt")
                    if spot.kind == "file":
                        seen.add(read_bytes(spot))
            except ToolError:
                continue
    finally:
        stop.set()
        thread.join()
    assert seen <= {b"INSIDE"}


pieces = st.lists(st.sampled_from(["..", ".", "sub", "leak", "in", "a.txt", "new", "", "s.txt", "~"]), max_size=6)


@settings(max_examples=150, deadline=None)
@given(pieces, st.booleans())
def test_no_path_ever_leads_out(parts, absolute):
    with tempfile.TemporaryDirectory() as folder:
        base = os.path.realpath(folder)
        space = os.path.join(base, "w")
        os.makedirs(f"{space}/sub")
        os.makedirs(f"{base}/out")
        for name in (f"{base}/out/s.txt", f"{base}/s.txt", f"{space}/a.txt"):
            with open(name, "w") as file:
                file.write("x")
        os.symlink("../out", f"{space}/leak")
        os.symlink("sub", f"{space}/in")
        path = (f"{space}/" if absolute else "") + "/".join(parts)
        try:
            with Root(space) as root:
                spot = root.find(path)
        except ToolError:
            return
        assert (os.path.realpath(spot.path) + "/").startswith(space + "/")
