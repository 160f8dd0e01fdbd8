import os
import struct
import zlib

import pytest

from limpet.errors import PathRefusedError, ToolError
from limpet.testing.context import Recorded, call, tool_context
from limpet.tools.disk import compare, digest, discard, temporary_of
from limpet.tools.files_read import read_file
from limpet.tools.files_search import find_files, grep, list_dir
from limpet.tools.files_write import delete_path, write_file
from limpet.types.content import Image
from limpet.types.tool import FileIntent


@pytest.fixture
def space(tmp_path):
    folder = tmp_path / "w"
    folder.mkdir()
    return folder


def png(width, height):
    head = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head))


def test_read_pages_by_whole_lines(space):
    (space / "a").write_text("".join(f"{n}\n" for n in range(1, 11)))
    result = call(read_file, tool_context(space), path="a", offset=3, limit=2)
    assert result.text == "3\n4\n[Lines 3-4 of 10. Go on with offset=5.]"
    assert call(read_file, tool_context(space), path="a", offset=9).text == "9\n10\n"


def test_read_says_what_it_saw(space):
    (space / "a").write_bytes(b"\xef\xbb\xbfhi\r\n")
    result = call(read_file, tool_context(space), path="a")
    assert result.text == "hi\r\n"
    assert (result.details.path, result.details.sha256) == (str(space / "a"), digest(b"\xef\xbb\xbfhi\r\n"))


def test_read_stops_at_50_kb_and_2000_lines(space):
    (space / "wide").write_text(("x" * 99 + "\n") * 1_000)
    (space / "long").write_text("x\n" * 3_000)
    context = tool_context(space, result_limit=64_000)
    assert "[Lines 1-500 of 1000. Go on with offset=501.]" in call(read_file, context, path="wide").text
    assert "[Lines 1-2000 of 3000. Go on with offset=2001.]" in call(read_file, context, path="long").text


@pytest.mark.parametrize(
    ("data", "arguments", "message"),
    [
        (b"a\nb\n", {"offset": 3}, "past the end: f has 2 lines"),
        (b"x" * 60_000, {}, "line 1 of f has 60,000 characters"),
        (b"\x7fELF\x00\x00", {}, "not text: an ELF program"),
        (b"ab\x00cd", {}, "not text: binary data"),
        (b"a", {"offset": 0}, "start at 1"),
    ],
)
def test_read_refuses(space, data, arguments, message):
    (space / "f").write_bytes(data)
    with pytest.raises(ToolError, match=message):
        call(read_file, tool_context(space, result_limit=64_000), path="f", **arguments)


def test_read_other_encodings(space):
    (space / "latin").write_bytes(b"ok\ncaf\xe9\n")
    (space / "wide").write_bytes("h\u00e9".encode("utf-16"))
    text = call(read_file, tool_context(space), path="latin").text
    assert text.startswith("ok\ncaf\ufffd\n")
    assert "first on line 2" in text
    assert call(read_file, tool_context(space), path="wide").text.startswith("h\u00e9")


def test_read_an_image(space):
    (space / "p.png").write_bytes(png(640, 480))
    context = tool_context(space)
    result = call(read_file, context, path="p.png")
    image = result.content[1]
    assert isinstance(image, Image)
    assert (image.mime, image.width, image.height) == ("image/png", 640, 480)
    assert context.blobs.get(image.blob) == png(640, 480)


def test_read_a_spill_by_the_path_of_its_notice(space):
    (space / "many").mkdir()
    for number in range(400):
        (space / "many" / f"file-{number:04}").write_text("")
    context = tool_context(space, result_limit=2_000)
    shown = call(list_dir, context, path="many")
    path = context.blobs.path(shown.details.spill)
    assert path in shown.text
    assert "file-0399" in call(read_file, context, path=path, offset=390, limit=20).text
    with pytest.raises(PathRefusedError):
        call(read_file, context, path=path[:-1] + "0" if path[-1] != "0" else path[:-1] + "1")


def test_write_makes_folders_and_commits_its_intent_first(space):
    recorded = Recorded()
    result = call(write_file, tool_context(space, recorded=recorded), path="x/y/z.txt", content="hé")
    target = space / "x" / "y" / "z.txt"
    assert target.read_text() == "hé"
    intent = FileIntent(path=str(target), before="", after=digest("hé".encode()))
    assert recorded.intents == [intent]
    assert (result.details.path, result.details.sha256) == (intent.path, intent.after)
    assert compare(intent) == "done"


def test_write_keeps_the_mode_and_leaves_nothing_else(space):
    (space / "run.sh").write_text("old")
    (space / "run.sh").chmod(0o755)
    call(write_file, tool_context(space), path="run.sh", content="new")
    assert (space / "run.sh").stat().st_mode & 0o777 == 0o755
    assert os.listdir(space) == ["run.sh"]


def test_nothing_is_written_when_the_intent_is_not_committed(space):
    class Refusing(Recorded):
        async def starting(self, intent):
            raise RuntimeError("lease lost")

    with pytest.raises(RuntimeError):
        call(write_file, tool_context(space, recorded=Refusing()), path="x/y/a", content="x")
    assert os.listdir(space) == []


def test_a_file_changed_since_it_was_read_is_not_overwritten(space):
    (space / "a").write_text("theirs")
    recorded = Recorded()
    context = tool_context(space, seen={str(space / "a"): digest(b"mine")}, recorded=recorded)
    for tool, arguments in ((write_file, {"content": "x"}), (delete_path, {})):
        with pytest.raises(ToolError, match="changed since you last read it"):
            call(tool, context, path="a", **arguments)
    assert (space / "a").read_text() == "theirs"
    assert recorded.intents == []


def test_a_file_deleted_since_it_was_read_can_be_written_again(space):
    context = tool_context(space, seen={str(space / "a"): digest(b"mine")})
    call(write_file, context, path="a", content="x")
    assert (space / "a").read_text() == "x"


def test_a_file_changed_while_the_intent_was_committed_is_not_overwritten(space):
    (space / "a").write_text("one")

    class Meddling(Recorded):
        async def starting(self, intent):
            (space / "a").write_text("theirs")

    with pytest.raises(ToolError, match="changed by something else"):
        call(write_file, tool_context(space, recorded=Meddling()), path="a", content="mine")
    assert (space / "a").read_text() == "theirs"


def test_missing_folders_behind_links_are_made_where_they_lead(space):
    (space / "sub").mkdir()
    (space / "link").symlink_to("sub")
    call(write_file, tool_context(space), path="link/new/a", content="x")
    assert (space / "sub" / "new" / "a").read_text() == "x"
    (space / "dangling").symlink_to("gone/deep")
    call(write_file, tool_context(space), path="dangling/a", content="y")
    assert (space / "gone" / "deep" / "a").read_text() == "y"


@pytest.mark.parametrize("path", [".", "sub", "sub/", "new/", ".limpet/x", "file/x"])
def test_write_refuses(space, path):
    (space / "sub").mkdir()
    (space / "file").write_text("")
    with pytest.raises(ToolError):
        call(write_file, tool_context(space), path=path, content="x")


def test_delete_moves_to_the_trash(space):
    (space / "d").mkdir()
    (space / "d" / "a.txt").write_text("A")
    recorded = Recorded()
    result = call(delete_path, tool_context(space, key="e1.2", recorded=recorded), path="d/a.txt")
    assert not (space / "d" / "a.txt").exists()
    assert (space / ".limpet/trash/e1.2/d/a.txt").read_text() == "A"
    assert ".limpet/trash/e1.2/d/a.txt" in result.text
    assert compare(recorded.intents[0]) == "done"
    call(delete_path, tool_context(space, key="e1.3"), path="d")
    assert (space / ".limpet/trash/e1.3/d").is_dir()


def test_delete_a_link_not_what_it_names(space):
    (space / "a.txt").write_text("A")
    (space / "link").symlink_to("a.txt")
    (space / "away").symlink_to("/etc/passwd")
    call(delete_path, tool_context(space), path="link")
    call(delete_path, tool_context(space), path="away")
    assert sorted(os.listdir(space)) == [".limpet", "a.txt"]


def test_compare_tells_what_became_of_an_intent(space):
    path = space / "f"
    intent = FileIntent(path=str(path), before=digest(b"old"), after=digest(b"new"))
    assert compare(intent) == "unknown"
    for content, outcome in (("old", "before"), ("new", "done"), ("other", "unknown")):
        path.write_text(content)
        assert compare(intent) == outcome
    assert compare(FileIntent(path=str(space / "gone"), before="", after="x")) == "before"
    assert compare(FileIntent(path=str(space / "gone"), before="x", after="")) == "done"
    assert compare(FileIntent(path=str(space), before="folder", after="")) == "before"


def test_list_shows_folders_first_and_hides_state(space):
    for name in ("b", "A", ".limpet"):
        (space / name).mkdir()
    (space / "x.txt").write_text("hello")
    (space / "link").symlink_to("x.txt")
    assert call(list_dir, tool_context(space)).text == "A/\nb/\nlink -> x.txt\nx.txt  5"


def test_list_caps_at_500(space):
    for number in range(501):
        (space / f"{number:03}").write_text("")
    assert "[500 of 501 entries." in call(list_dir, tool_context(space)).text


@pytest.fixture
def tree(space):
    for name, text in {
        "src/a.py": "import os\nprint('Hello')\n",
        "src/deep/b.py": "hello = 1\nx\ny\nHELLO = 2\n",
        "src/c.txt": "hello\n",
        "build/z.py": "hello\n",
        ".git/q.py": "hello\n",
        ".limpet/trash/1/t.py": "hello\n",
        "keep.log": "hello\n",
        "drop.log": "hello\n",
        ".gitignore": "build/\n*.log\n!keep.log\n/src/c.txt\n",
    }.items():
        path = space / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (space / "bin.py").write_bytes(b"hello\0")
    (space / "src" / "out.py").symlink_to("/etc/passwd")
    return space


def test_find_honours_ignore_files(tree):
    assert call(find_files, tool_context(tree), pattern="*.py").text == "bin.py\nsrc/a.py\nsrc/deep/b.py"
    assert call(find_files, tool_context(tree), pattern="*.log").text == "keep.log"
    assert call(find_files, tool_context(tree), pattern="src/*.{py,txt}").text == "src/a.py"
    assert call(find_files, tool_context(tree), pattern="*.py", path="src/deep").text == "src/deep/b.py"
    assert "[No file matches *.rs" in call(find_files, tool_context(tree), pattern="*.rs").text


def test_rules_of_folders_above_hold_below(tree):
    assert "No file" in call(find_files, tool_context(tree), pattern="*.txt", path="src").text
    assert call(find_files, tool_context(tree), pattern="*", path="build").text == "build/z.py"


def test_grep(tree):
    context = tool_context(tree)
    assert call(grep, context, pattern="hello", path="src").text == "src/deep/b.py:1: hello = 1"
    found = call(grep, context, pattern="^hello", path="src", ignore_case=True, context_lines=1).text
    assert found == "src/deep/b.py:1: hello = 1\nsrc/deep/b.py-2- x\nsrc/deep/b.py-3- y\nsrc/deep/b.py:4: HELLO = 2"
    assert call(grep, context, pattern="print('", literal=True, glob="*.py").text == "src/a.py:2: print('Hello')"
    assert call(grep, context, pattern="hello", path="src/c.txt").text == "src/c.txt:1: hello"
    with pytest.raises(ToolError, match="not a regular expression"):
        call(grep, context, pattern="(")


def test_grep_caps_matches_and_lines(space):
    (space / "many").write_text("hit\n" * 150)
    (space / "wide").write_text("w" * 2_000 + "\n")
    text = call(grep, tool_context(space), pattern="hit").text
    assert text.count("many:") == 100
    assert text.endswith("[Only the first 100 matches. Narrow the pattern, the path or the glob.]")
    wide = call(grep, tool_context(space), pattern="ww").text
    assert len(wide) < 600
    assert "[2000 characters]" in wide


def test_what_a_killed_write_left_is_removed_by_who_settles_the_call(tmp_path):
    leftover = tmp_path / temporary_of("e1.0")
    leftover.write_text("half")
    discard(FileIntent(str(tmp_path / "a.txt"), before="", after="x"), "e1.1")
    assert leftover.exists()
    discard(FileIntent(str(tmp_path / "a.txt"), before="", after="x"), "e1.0")
    discard(FileIntent(str(tmp_path / "gone" / "a.txt"), before="", after="x"), "e1.0")
    assert list(tmp_path.iterdir()) == []
