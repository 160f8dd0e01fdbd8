"""Logs to test with: a builder for exact ones, and a strategy for any that a session could hold."""

from __future__ import annotations

from hypothesis import strategies as st

from limpet.types.content import Text, Thinking, ToolCall
from limpet.types.entry import (
    AssistantEntry,
    Compaction,
    Entry,
    Leaf,
    Note,
    Payload,
    ToolResultEntry,
    ToolStarted,
    UserEntry,
)
from limpet.types.message import AssistantMessage, Producer, UserMessage
from limpet.types.tool import text_result

A = Producer(provider="p", wire="anthropic", model="a")
B = Producer(provider="p", wire="anthropic", model="b")


class Builder:
    """Appends entries as the store would: `seq` counts up, each hangs on the leaf."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.leaf = ""

    def add(self, payload: Payload) -> str:
        seq = len(self.entries) + 1
        entry = Entry(session="s", seq=seq, id=f"e{seq}", parent=self.leaf, at=seq, turn="t", payload=payload)
        self.entries.append(entry)
        self.leaf = payload.target if isinstance(payload, Leaf) else entry.id
        return entry.id

    def user(self, text: str = "hi", runtime: str = "") -> str:
        return self.add(UserEntry(UserMessage((Text(text),), runtime=runtime)))

    def assistant(self, text: str = "", calls: tuple[str, ...] = (), producer: Producer = A, thinking: str = "") -> str:
        blocks = (
            *((Thinking(thinking, signature="s"),) if thinking else ()),
            *((Text(text),) if text else ()),
            *(ToolCall(id=name, name="exec", arguments="{}") for name in calls),
        )
        return self.add(AssistantEntry(AssistantMessage(blocks, producer=producer)))

    def result(self, assistant: str, index: int, text: str = "ok") -> str:
        return self.add(ToolResultEntry(assistant=assistant, index=index, name="exec", result=text_result(text)))


@st.composite
def any_log(draw: st.DrawFn) -> list[Entry]:
    """Any log, also broken ones: results without calls, calls without results, blank texts, jumps, compactions."""
    log = Builder()
    answers: list[str] = []
    for _ in range(draw(st.integers(1, 25))):
        kind = draw(st.sampled_from(["user", "answer", "call", "result", "started", "note", "leaf", "compaction"]))
        text = draw(st.sampled_from(["", " ", "a", "b\n"]))
        ids = [entry.id for entry in log.entries]
        match kind:
            case "user":
                log.user(text, runtime=draw(st.sampled_from(["", "<runtime>1</runtime>"])))
            case "answer":
                log.assistant(text, producer=draw(st.sampled_from([A, B])), thinking=text)
            case "call":
                calls = tuple(draw(st.lists(st.sampled_from(["c1", "c2", ""]), min_size=1, max_size=3)))
                answers.append(log.assistant(text, calls, producer=draw(st.sampled_from([A, B]))))
            case "result" if answers:
                log.result(draw(st.sampled_from(answers)), draw(st.integers(0, 3)), text)
            case "started" if answers:
                log.add(ToolStarted(assistant=answers[-1], index=0, name="exec", effect="unsafe"))
            case "leaf" if ids:
                log.add(Leaf(draw(st.sampled_from(ids))))
            case "compaction" if ids:
                log.add(Compaction(summary="so far", first_kept=draw(st.sampled_from(ids))))
            case _:
                log.add(Note(text or "n"))
    return log.entries
