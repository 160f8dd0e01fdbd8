"""Public conversations with questions and their evidence, read by path: LoCoMo (CC BY-NC 4.0), MADial-Bench (MIT)."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

_KINDS = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}


class Message(NamedTuple):
    """One message of a store; `session` is the conversation it belongs to."""

    id: str
    session: str
    day: date | None
    speaker: str
    text: str

    @property
    def line(self) -> str:
        return f"{self.speaker}: {self.text}" if self.speaker else self.text


class Question(NamedTuple):
    """`gold` are the messages that hold the answer. Those of kind `adversarial` are not in the totals."""

    text: str
    gold: frozenset[str]
    kind: str


class Conversation(NamedTuple):
    """One store of memory and what is asked of it, on the day `today`."""

    messages: Sequence[Message]
    questions: Sequence[Question]
    today: date


class Record(NamedTuple):
    """What is indexed as one: `text` is shown, `context` only searched; it covers the messages `covers`."""

    text: str
    context: str
    group: str
    day: date | None
    speaker: str
    covers: frozenset[str]

    @property
    def tokens(self) -> int:
        """By the rule of the published figures: a CJK character is one, else four characters."""
        cjk = len(re.findall(r"[\u3400-\u9fff\uf900-\ufaff\u3040-\u30ff\uac00-\ud7af]", self.text))
        return max(1, round((len(self.text) - cjk) / 4 + cjk))


def locomo(folder: Path) -> Iterator[Conversation]:
    for sample in json.loads((folder / "locomo" / "locomo10.json").read_text("utf-8")):
        talk = sample["conversation"]
        messages: list[Message] = []
        for number in range(1, 100):
            if f"session_{number}_date_time" not in talk:
                break
            day = datetime.strptime(talk[f"session_{number}_date_time"].strip(), "%I:%M %p on %d %B, %Y").date()
            for turn in talk.get(f"session_{number}", []):
                shared = f" [shared {turn['blip_caption']}]" if turn.get("blip_caption") else ""
                messages.append(Message(turn["dia_id"], str(number), day, turn["speaker"], turn["text"] + shared))
        known = {message.id for message in messages}
        questions: list[Question] = []
        for one in sample["qa"]:
            named = re.findall(r"D(\d+):(\d+)", " ".join(one.get("evidence") or []))
            gold = frozenset(f"D{int(a)}:{int(b)}" for a, b in named) & known
            if gold:
                questions.append(Question(str(one["question"]), gold, _KINDS[one["category"]]))
        last = max(message.day for message in messages if message.day)
        yield Conversation(messages, questions, last + timedelta(days=1))


def madial(folder: Path, language: str) -> Iterator[Conversation]:
    """One store for each user; a question is a dialogue up to the moment at which something is remembered."""
    memories = _lines(folder / "madial" / language / "memory.jsonl")
    owners = {
        key: value["user-id"]
        for line in _lines(folder / "madial" / "zh" / "memory.jsonl")
        for key, value in line.items()
    }
    stores: dict[str, list[Message]] = defaultdict(list)
    for line in memories:
        for key, value in line.items():
            day = date.fromisoformat(value["time"]) if re.fullmatch(r"\d{4}-\d\d-\d\d", value["time"]) else None
            stores[owners[key]].append(Message(str(int(key)), key, day, "", f"{value['time']} {value['event']}"))
    asked: dict[str, list[Question]] = defaultdict(list)
    for line in _lines(folder / "madial" / language / "dialogue.jsonl"):
        turn = line["test-turn"][0] if isinstance(line["test-turn"], list) else line["test-turn"]
        said = [text.strip() for text in line["dialogue"][:turn] if not text.startswith("<BOD")]
        text = re.sub(r"<[^>]*>\s*[:\uff1a]\s*", "", " ".join(said)).replace('"', " ")
        known = {message.id for message in stores[line["user-id"]]}
        if gold := frozenset(map(str, line["relevant-id"])) & known:
            asked[line["user-id"]].append(Question(text, gold, "recall"))
    for user, questions in asked.items():
        yield Conversation(stores[user], questions, date(2024, 1, 1))


def _lines(path: Path) -> list[dict[str, dict[str, str]]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def turns(messages: Sequence[Message], *, context: bool = True) -> list[Record]:
    """Each message alone, searched with its date and the message before it."""
    found: list[Record] = []
    before: Message | None = None
    for message in messages:
        day = f"[{message.day:%d %B %Y}] " if message.day and context else ""
        ahead = f"{before.line[:400]}\n" if before and context and before.session == message.session else ""
        found.append(
            Record(message.line, day + ahead, message.session, message.day, message.speaker, frozenset([message.id]))
        )
        before = message
    return found


def chunks(messages: Sequence[Message], *, size: int = 1_600, overlap: int = 320) -> list[Record]:
    """The day's notes, a line a message, cut into pieces of 1,600 characters that overlap by 320 (about 400 and 80
    tokens)."""
    notes: dict[str, list[tuple[str, str]]] = defaultdict(list)
    days: dict[str, date | None] = {}
    sessions = Counter[str]()
    for message in messages:
        key = message.day.isoformat() if message.day else f"s{message.session}"
        days.setdefault(key, message.day)
        if not notes[key]:
            notes[key].append((f"# {key}", ""))
        sessions[message.session] += 1
        if sessions[message.session] == 1:
            notes[key].append((f"## session {message.session}", ""))
        notes[key] += [(line, message.id) for line in f"- {message.line}".split("\n")]
    return [
        Record(
            "\n".join(text for text, _ in piece)[:size], "", key, days[key], "", frozenset(id for _, id in piece if id)
        )
        for key, lines in notes.items()
        for piece in _pieces(lines, size, overlap)
    ]


def _pieces(lines: Sequence[tuple[str, str]], size: int, overlap: int) -> Iterator[list[tuple[str, str]]]:
    piece: list[tuple[str, str]] = []
    for text, name in lines:
        for part in [text[at : at + size] for at in range(0, len(text), size)] or [""]:
            if piece and _length(piece) + len(part) + 1 > size:
                yield piece
                while piece and _length(piece) > overlap:
                    piece = piece[1:]
            piece = [*piece, (part, name)]
    if piece:
        yield piece


def _length(piece: Sequence[tuple[str, str]]) -> int:
    return sum(len(text) + 1 for text, _ in piece)
