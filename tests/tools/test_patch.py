import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.errors import ToolError
from limpet.tools.patch import Hunk, Section, parse, patched, paths_in


def update(*lines: str, text: str) -> str:
    return patched(text, parse("\n".join(["*** Begin Patch", "*** Update File: a", *lines, "*** End Patch"]))[0])


def test_all_kinds_of_sections():
    text = (
        "*** Begin Patch\n*** Add File: new.txt\n+one\n+\n*** Delete File: old.txt\n"
        "*** Update File: a.py\n*** Move to: b.py\n@@ def f():\n x\n-y\n+z\n*** End Patch\n"
    )
    assert parse(text) == [
        Section("add", "new.txt", content="one\n\n"),
        Section("delete", "old.txt"),
        Section("update", "a.py", to="b.py", hunks=(Hunk(((" ", "x"), ("-", "y"), ("+", "z")), ("def f():",)),)),
    ]
    assert paths_in(text) == ("new.txt", "old.txt", "a.py", "b.py")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("*** Update File: a\n+x", "has to begin with"),
        ("*** Begin Patch\n*** Update File: a\n-x\n+y", "and end with"),
        ("*** Begin Patch\n*** End Patch", "names no file"),
        ("*** Begin Patch\nfoo\n*** End Patch", "line 2 of the patch: expected"),
        ("*** Begin Patch\n*** Add File: a\n+x\ny\n*** End Patch", "line 4 of the patch: each line of an added file"),
        ("*** Begin Patch\n*** Update File: a\n*** End Patch", "without a hunk"),
        ("*** Begin Patch\n*** Update File: a\n-x\n?y\n*** End Patch", "line 4 of the patch: a line of a hunk"),
        ("*** Begin Patch\n*** Delete File: a\n*** Add File: a\n+x\n*** End Patch", "a is named twice"),
    ],
)
def test_a_patch_without_meaning_says_where(text, said):
    with pytest.raises(ToolError, match=said):
        parse(text)


def test_several_hunks_each_in_its_place():
    assert update("-a", "+A", "@@", " c", "-d", text="a\nb\nc\nd\ne\n") == "A\nb\nc\ne\n"


def test_a_line_above_chooses_among_equal_places():
    text = "def f():\n    return 1\n\ndef g():\n    return 1\n"
    assert update("@@ def g():", "-    return 1", "+    return 2", text=text).endswith("g():\n    return 2\n")
    with pytest.raises(ToolError, match=r"a, hunk 1: its lines stand at 2 places \(lines 2, 5\)"):
        update("-    return 1", "+    return 2", text=text)


def test_headers_of_unified_diffs_are_read():
    assert update("@@ -1,2 +1,2 @@ one", "-two", "+2", text="one\ntwo\n") == "one\n2\n"


def test_lines_are_added_at_the_beginning_the_end_and_in_between():
    assert update("+0", " a", "+1", " b", "+2", text="a\nb") == "0\na\n1\nb\n2"
    assert update("+end", text="a\n") == "a\nend\n"
    assert update("@@ a", "+after a", text="a\nb\n") == "a\nafter a\nb\n"


def test_the_end_of_the_file_chooses_the_last():
    assert update(" x", "+y", "*** End of File", text="x\nz\nx\n") == "x\nz\nx\ny\n"


def test_normalised_lines_match_and_stay_as_they_are():
    text = "say \u201chi\u201d  \nold\n"
    assert update(' say "hi"', "-old", "+new", text=text) == "say \u201chi\u201d  \nnew\n"


def test_line_ends_of_other_lines_stay():
    assert update(" a", "+x", " b", "-c", "+C", text="a\r\nb\nc\r\nd") == "a\r\nx\nb\nC\r\nd"


def test_whole_lines_only():
    with pytest.raises(ToolError, match=r"its lines were not found; nothing was changed. The nearest is at lines 1-1:"):
        update("-ab", "+x", text="abc\n")


def test_lines_around_an_empty_line():
    assert update("+a", " ", "+b", text="x\n\ny\n") == "x\na\n\nb\ny\n"


line = st.text(alphabet="ab \r", max_size=3).map(lambda text: text.strip("\r"))


@given(st.lists(line, min_size=1, max_size=8), st.data())
def test_a_hunk_over_the_whole_file_makes_exactly_its_new_lines(old, data):
    marked = [(data.draw(st.sampled_from(" -")), text) for text in old]
    for place in data.draw(st.lists(st.integers(0, len(old)), max_size=3)):
        marked.insert(place, ("+", data.draw(line)))
    end = data.draw(st.sampled_from(["\n", ""])) if old[-1] else "\n"
    kept = [text for mark, text in marked if mark != "-"]
    new = "\n".join(kept) + end if kept else ""
    result = patched("\n".join(old) + end, Section("update", "a", hunks=(Hunk(tuple(marked)),)))
    assert result == new
