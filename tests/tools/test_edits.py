import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.errors import ToolError
from limpet.testing.context import Recorded, call, tool_context
from limpet.tools.disk import digest
from limpet.tools.edits import Edit, Flat, apply
from limpet.tools.files_edit import edit_file


def one(text, old, new, replace_all=False):
    return apply(text, [Edit(old, new, replace_all)])[0]


def test_exact():
    assert one("a b c", "b", "B") == "a B c"


def test_several_are_matched_against_the_original():
    text, lines = apply("one\ntwo\nthree\n", [Edit("two", "one"), Edit("one", "two")])
    assert (text, lines) == ("two\none\nthree\n", [1, 2])


def test_overlaps_are_refused():
    with pytest.raises(ToolError, match="edits 1 and 2 overlap at line 1"):
        apply("abcdef", [Edit("abcd", "x"), Edit("cdef", "y")])


def test_more_than_one_place_is_refused_unless_all():
    with pytest.raises(ToolError, match=r"occurs 2 times \(lines 1, 3\)"):
        one("x\ny\nx\n", "x", "z")
    assert one("x\ny\nx\n", "x", "z", replace_all=True) == "z\ny\nz\n"


def test_exact_match_wins_over_an_alike_one():
    assert one('\u201cq\u201d "q"', '"q"', "X") == "\u201cq\u201d X"


@pytest.mark.parametrize(
    ("text", "old"),
    [
        ("say \u201chi\u201d \u2013 now", 'say "hi" - now'),
        ('say "hi"   \nnext', 'say "hi"\nnext'),
        ("full\uff21\uff11", "fullA1"),
        ("cafe\u0301", "caf\u00e9"),
        ("a\u00a0b", "a b"),
    ],
)
def test_alike_text_is_found(text, old):
    assert one(f"before\n{text}\nafter", old, "NEW") == "before\nNEW\nafter"


def test_only_touched_lines_are_rewritten():
    text = "\u201cfar\u201d  \nkeep \u2013 me\nchange \u201cthis\u201d\nend  "
    result = one(text, 'keep - me\nchange "this"', 'keep - me\nchanged "it"')
    assert result == '\u201cfar\u201d  \nkeep \u2013 me\nchanged "it"\nend  '


def test_half_of_a_ligature_is_not_matched():
    with pytest.raises(ToolError, match="not found"):
        one("\ufb01n", "f", "X")


def test_the_nearest_region_is_shown():
    with pytest.raises(ToolError) as caught:
        one(
            "def a():\n    return 1\n\ndef total(items):\n    return sum(items)\n",
            "def total(item):\n    return 0",
            "x",
        )
    assert "The nearest is at lines 4-5:\ndef total(items):\n    return sum(items)" in str(caught.value)


def test_no_change_is_an_error():
    with pytest.raises(ToolError, match="nothing would change"):
        one("a\r\nb", "a\nb", "a\nb")


texts = st.text(st.sampled_from('ab\n\r\u201c"-\u2013 e\u0301'), min_size=1, max_size=40)


@given(texts, st.integers(0, 40), st.integers(1, 10), st.text("xyz\n", max_size=5))
def test_everything_outside_the_edit_stays(text, start, length, new):
    flat = Flat(text)
    old = flat.text[start : start + length]
    if not old or flat.text.count(old) != 1:
        return
    try:
        result = one(text, old, new)
    except ToolError:
        return
    place = flat.text.index(old)
    before, after = text[: flat.back(place)], text[flat.back(place + len(old)) :]
    assert result.startswith(before)
    assert result.endswith(after)
    assert result[len(before) : len(result) - len(after)].replace("\r\n", "\n") == new


def test_tool_gives_the_diff_and_the_hash(tmp_path):
    space = tmp_path / "w"
    space.mkdir()
    (space / "f").write_text("".join(f"{n}\n" for n in range(20)))
    recorded = Recorded()
    result = call(edit_file, tool_context(space, recorded=recorded), path="f", old="10\n", new="ten\n")
    assert result.text.startswith("edited f: 1 replacement (line 11)\n--- a/f\n+++ b/f\n@@ -7,9 +7,9 @@\n 6\n")
    assert "-10\n+ten\n" in result.details.diff
    assert result.details.sha256 == digest((space / "f").read_bytes()) == recorded.intents[0].after


def test_tool_takes_edits_as_text_too(tmp_path):
    (tmp_path / "f").write_text("a b")
    call(edit_file, tool_context(tmp_path), path="f", edits=json.dumps([{"old": "a", "new": "A"}]))
    assert (tmp_path / "f").read_text() == "A b"


def test_bytes_that_are_not_utf8_stay(tmp_path):
    (tmp_path / "f").write_bytes(b"caf\xe9\nx\n")
    call(edit_file, tool_context(tmp_path), path="f", old="x", new="y")
    assert (tmp_path / "f").read_bytes() == b"caf\xe9\ny\n"


@pytest.mark.parametrize(
    ("data", "arguments", "message"),
    [
        (b"\x00\x01", {"old": "a", "new": "b"}, "not text"),
        ("a".encode("utf-16"), {"old": "a", "new": "b"}, "UTF-16"),
        (b"a", {"old": "", "new": "b"}, "old is empty"),
        (b"a", {"old": "a", "new": "b", "edits": [{"old": "a", "new": "c"}]}, "not both"),
    ],
)
def test_tool_refuses(tmp_path, data, arguments, message):
    (tmp_path / "f").write_bytes(data)
    with pytest.raises(ToolError, match=message):
        call(edit_file, tool_context(tmp_path), path="f", **arguments)
    assert (tmp_path / "f").read_bytes() == data
