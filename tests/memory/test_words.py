"""Words of an index and of a question, in several scripts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from limpet.memory.words import indexed, terms


def asked(question: str) -> list[str]:
    return [term.text for term in terms(question)]


def test_runs_of_characters_are_cut_into_characters_and_pairs() -> None:
    assert indexed("成语接龙") == "成 语 接 龙 成语 语接 接龙"
    assert asked("接龙") == ["接龙", "接", "龙"]


def test_a_single_character_of_a_longer_run_is_weak() -> None:
    assert [(term.text, term.weak) for term in terms("猫")] == [("猫", False)]
    assert [term.weak for term in terms("大桥")] == [False, True, True]


def test_small_words_are_dropped_unless_there_is_nothing_else() -> None:
    assert asked("When did we buy the piano?") == ["buy", "piano"]
    assert asked("who are you") == ["who", "be", "you"]
    assert asked("我的猫在哪里") == ["的猫", "猫在", "猫"]


def test_forms_of_irregular_verbs_are_one_word() -> None:
    assert indexed("She went and bought it").split() == ["she", "go", "and", "buy", "it"]
    assert asked("where has she gone") == ["go"]


def test_names_with_marks_are_phrases() -> None:
    assert [term.match for term in terms("host alpha-7, v1.2_b")] == ['"host"', '"alpha 7"', '"v1 2 b"']


def test_case_and_width_do_not_matter() -> None:
    assert asked("\uff37\uff29\uff26\uff29 Password") == ["wifi", "password"]


@given(st.text(max_size=60))
def test_no_question_is_an_operator(text: str) -> None:
    for term in terms(text):
        assert term.match.startswith('"')
        assert '"' not in term.match[1:-1]
