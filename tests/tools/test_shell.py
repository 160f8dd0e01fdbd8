"""Reading shell scripts: which commands are in them, and what cannot be known before they run."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.tools import shell
from limpet.tools.danger import danger


def commands(text: str) -> list[str]:
    return [" ".join(word.text for word in words) for words in shell.read(text).commands]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("echo a && touch X; ls | wc", ["echo a", "touch X", "ls", "wc"]),
        ("echo a\ntouch X", ["echo a", "touch X"]),
        ("git 'sta'tus \"-s\" a\\ b", ["git status -s a b"]),
        ("if [ -f x ]; then rm x; else ls; fi", ["[ -f x ]", "rm x", "ls"]),
        ("f() { touch X; }; (cd a; { ls; }) &", ["touch X", "cd a", "ls"]),
        ("env A=1 sh -c 'touch X'", ["env A=1 sh -c touch X", "sh -c touch X", "touch X"]),
        ("busybox sh -c 'touch X'", ["busybox sh -c touch X", "sh -c touch X", "touch X"]),
        ("sudo -u bob timeout -s KILL 5 ls", ["sudo -u bob timeout -s KILL 5 ls", "timeout -s KILL 5 ls", "ls"]),
        (
            "find . -exec touch X ;",
            [
                "find . -exec touch X",
            ],
        ),
        ("find . -exec touch {} +", ["find . -exec touch {} +", "touch {}"]),
        ("echo $(touch X)", ["echo $(touch X)", "touch X"]),
        ("# touch X", []),
        ("", []),
    ],
)
def test_simple_commands(text: str, found: list[str]) -> None:
    assert [one for one in commands(text) if one in found] == found
    assert shell.read(text).commands == () or found


@pytest.mark.parametrize(
    "text",
    [
        "echo $(touch X)",
        "echo `touch X`",
        'echo "$(touch X)"',
        "echo <(touch X)",
        "$CMD a",
        "/bin/e*o a",
        "{touch,X}",
        "echo ${x:-$(touch X)}",
        "echo ${x@P}",
        "echo $((a[$(touch X)]))",
        "eval $x",
        'sh -c "$x"',
        "echo $'a'",
        "echo 'open",
        "echo a (",
        "ec\\\nho a",
        "echo\u00a0a",
        "cat <<EOF\n$(touch X)\nEOF",
        "env -S 'touch X'",
        "for ((;;)); do ls; done",
        "a[$(touch X)]=1",
        "((x=1))",
        "a 3<> e",
    ],
)
def test_what_cannot_be_known(text: str) -> None:
    assert shell.read(text).obstacle


@pytest.mark.parametrize(
    "text", ["echo a", "echo $x ${y} 'z'", "ls *.py | wc -l 2>&1", "cat <<'EOF'\n$(no)\nEOF", "a\\\n b"]
)
def test_what_can_be_known(text: str) -> None:
    assert shell.read(text).obstacle == ""


def test_redirections() -> None:
    script = shell.read("A=1 sort < in > out 2>> log >| c &> d 2>&1 >&-")
    assert script.reads == ("in",)
    assert script.writes == ("out", "log", "c", "d")
    assert script.assigned == ("1",)


@given(st.text(max_size=60))
def test_any_text_can_be_read(text: str) -> None:
    shell.read(text)


@given(st.lists(st.text("abc $`'\"();&|<>\\\n*{}", max_size=8), min_size=1, max_size=4))
def test_quoted_words_are_one_command(words: list[str]) -> None:
    quoted = ["'" + word.replace("'", "'\\''") + "'" for word in ("x", *words)]
    script = shell.read(" ".join(quoted))
    if not script.obstacle:
        assert [tuple(word.text for word in one) for one in script.commands] == [("x", *words)]


def test_characters_far_up_after_a_brace_do_not_end_the_process() -> None:
    """The grammar's scanner reads beyond a table for some of them, in some processes: so it is given letters."""
    script = (
        "from limpet.tools import shell; print([w.text for w in shell.read('a{1..\\U0010fff0 \\u4f60').commands[0]])"
    )
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
        assert "\u4f60" in done.stdout


def test_words_keep_their_characters() -> None:
    script = shell.read('echo \u4f60\u597d "\u00e9 x" > \u00fc.txt')
    assert [word.text for word in script.commands[0]] == ["echo", "\u4f60\u597d", "\u00e9 x"]
    assert script.writes == ("\u00fc.txt",)


@pytest.mark.parametrize(
    "text",
    ["find " + "-exec find " * 40 + "ls", "sudo " * 900 + "rm -rf /", "\0" * 200_000, "a" * 200_000, "ls; " * 2_000],
)
def test_what_is_too_much_to_be_judged_says_so(text: str) -> None:
    assert shell.read(text).obstacle == shell.TOO_MUCH
    assert danger(text) == shell.TOO_MUCH
