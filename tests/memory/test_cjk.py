"""Chinese, Japanese and Korean without spaces: what is asked for by a part of a sentence is found first."""

from __future__ import annotations

from pathlib import Path

import pytest

from limpet.memory.words import terms
from tests.memory.shelves import ask, shelf_of, write

ASKED = {
    "用户对花生和海鲜过敏 外出就餐时要注意": ("过敏", "花生", "海鲜过敏吗"),
    "部署服务器运行 Debian 12 nginx 监听 8443 端口": ("端口", "服务器端口是多少", "nginx"),
    "每隔一周的周二上午十点开季度预算会议": ("预算会议", "会议", "季度预算"),
    "我的猫叫味噌 今年七岁了": ("猫", "味噌几岁"),
    "我们决定在计费服务中使用 PostgreSQL 而不是 MongoDB": ("PostgreSQL", "计费 MongoDB"),
    "南京市长江大桥今天封闭施工": ("长江大桥", "大桥", "封闭施工"),
    "研究生命起源是生物学的重要课题": ("生命", "生物学"),
    "办公室的无线网络密码每个月更换一次": ("密码", "无线网络"),
    "妈妈的生日是十月她喜欢兰花": ("兰花", "妈妈喜欢什么花"),
    "護照明年八月到期記得提前續簽": ("護照", "續簽"),
    "来週の火曜日に歯医者の予約があります": ("歯医者", "予約", "火曜日"),
    "駅前の喫茶店で山田さんと打ち合わせ": ("喫茶店", "山田さん", "打ち合わせ"),
    "引っ越しの荷物は倉庫に預けた": ("引っ越し", "倉庫"),
    "오늘 끝말잇기 게임을 했다": ("끝말잇기", "게임"),
    "다음 주에 치과 예약이 있다": ("치과", "예약"),
}


def test_nine_of_ten_are_found_at_rank_1(tmp_path: Path) -> None:
    write(tmp_path, "memory/notes.md", "".join(f"- {text}\n" for text in ASKED))
    shelf = shelf_of(tmp_path)
    wanted = [(question, text) for text, questions in ASKED.items() for question in questions]
    missed = [
        question
        for question, text in wanted
        if not any(text in one.text for one in ask(shelf, question, most=1, min_score=0.2))
    ]
    shelf.close()
    assert len(missed) <= 0.1 * len(wanted), missed


SENTENCES = (
    "用户对花生和海鲜过敏 外出就餐时要注意",
    "部署服务器运行 Debian 12 nginx 监听 8443 端口",
    "每隔一周的周二上午十点开季度预算会议",
    "我的猫叫味噌 今年七岁了",
    "我们决定在计费服务中使用 PostgreSQL 而不是 MongoDB",
    "办公室的无线网络密码每个月更换一次",
)


@pytest.mark.parametrize(
    ("question", "number"),
    [
        ("什么时候开会", 2),  # the two characters stand apart in the note
        ("会议几点开始", 2),
        ("我对什么过敏", 0),
        ("猫几岁", 3),
        ("为什么不使用 MongoDB", 4),
        ("密码多久更换一次", 5),
        ("服务器端口是多少", 1),
    ],
)
def test_the_words_that_make_a_question_do_not_count(tmp_path: Path, question: str, number: int) -> None:
    write(tmp_path, "memory/notes.md", "".join(f"- {text}\n" for text in SENTENCES))
    shelf = shelf_of(tmp_path)
    assert SENTENCES[number] in ask(shelf, question, most=1)[0].text
    shelf.close()


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("什么时候开会", ["开会"]),
        ("會議什麼時候開始", ["會議", "開始"]),
        ("健康診断はいつですか", ["健康", "康診", "診断", "断は"]),
        ("여권이 어디에 있나요", ["여권", "권이"]),
        ("什么", ["什么"]),
    ],
)
def test_a_question_asks_for_what_is_left_of_it(question: str, left: list[str]) -> None:
    assert [term.text for term in terms(question) if len(term.text) == 2] == left


def test_what_stands_nowhere_is_not_found(tmp_path: Path) -> None:
    write(tmp_path, "memory/notes.md", "- 今天去公园\n")
    shelf = shelf_of(tmp_path)
    assert ask(shelf, "火星") == []
    shelf.close()
