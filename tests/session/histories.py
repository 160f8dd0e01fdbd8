"""Sessions as they happen: turns, reductions, leaf moves and crashes in any order, and payloads of every kind."""

from __future__ import annotations

import msgspec
from hypothesis import strategies as st
from msgspec import Raw

from limpet.session.cut import cut
from limpet.session.stand_in import stand_in
from limpet.session.tree import next_leaf, path, visible
from limpet.types.content import Image, Opaque, Text, Thinking, ToolCall
from limpet.types.entry import (
    AssistantEntry,
    Compaction,
    Entry,
    Flush,
    GoalEntry,
    ImageAged,
    Label,
    Leaf,
    ModelChange,
    Note,
    Payload,
    PlanEntry,
    PlanStep,
    PromptEntry,
    Prune,
    RecallSwitch,
    Rollback,
    Section,
    Tombstone,
    ToolResultEntry,
    ToolStarted,
    TrustOnce,
    UndoPoint,
    UserEntry,
)
from limpet.types.message import AssistantMessage, UserMessage
from limpet.types.tool import Details, FileIntent, ToolResult, ToolSpec, text_result
from limpet.types.usage import Usage
from tests.session.logs import A, B, Builder

PICTURE = Image(blob="b", mime="image/png", name="cat.png", width=64, height=48)
STEPS = ("ask", "picture", "answer", "calls", "note", "compact", "prune", "age", "back", "label", "flush", "crash")


@st.composite
def any_history(draw: st.DrawFn) -> list[Entry]:
    """A session as Limpet could have written it. Summaries name the entries they cover, earlier ones included."""
    log = Builder()
    for number in range(draw(st.integers(0, 30))):
        _step(draw, log, draw(st.sampled_from(STEPS)), number)
    return log.entries


def _step(draw: st.DrawFn, log: Builder, step: str, number: int) -> None:
    match step:
        case "ask":
            log.user(f"question {number}", runtime="<runtime>now</runtime>")
        case "picture":
            log.add(UserEntry(UserMessage((Text("look"), PICTURE))))
        case "answer":
            log.assistant(f"answer {number}", producer=draw(st.sampled_from((A, B))), thinking="hm")
        case "calls":
            _calls(draw, log, number)
        case "note":
            log.add(Note(f"note {number}"))
        case "crash":
            _crash(log, draw(st.integers(0, len(log.entries))))
        case _ if log.entries:
            _turn_back(draw, log, step)
        case _:
            pass


def _turn_back(draw: st.DrawFn, log: Builder, step: str) -> None:
    """What is decided about entries that are there."""
    kinds = {
        kind: tuple(entry.id for entry in log.entries if isinstance(entry.payload, kind))
        for kind in (UserEntry, ToolResultEntry)
    }
    match step:
        case "compact":
            _compact(log, draw(st.integers(0, 120)))
        case "prune" if results := kinds[ToolResultEntry]:
            log.add(Prune(results[: draw(st.integers(1, len(results)))], how=draw(st.sampled_from(("soft", "hard")))))
        case "age":
            log.add(ImageAged(kinds[UserEntry]))
        case "back":
            log.add(Leaf(draw(st.sampled_from([entry.id for entry in path(log.entries)] or [log.entries[0].id]))))
        case "label":
            leaf = log.leaf
            log.add(Label(log.entries[0].id, "here"))
            log.leaf = leaf
        case "flush":
            log.add(Flush(upto=log.entries[-1].id, path="memory/today.md", lines=("- a",)))
        case _:
            pass


def _calls(draw: st.DrawFn, log: Builder, number: int) -> None:
    """An answer with calls, of which any number has results, in any order."""
    names = tuple(f"c{draw(st.integers(0, 3))}" for _ in range(draw(st.integers(1, 3))))
    answer = log.assistant(draw(st.sampled_from(("", "let me see"))), names)
    for index in draw(st.permutations(range(len(names))))[: draw(st.integers(0, len(names)))]:
        if draw(st.booleans()):
            log.add(ToolStarted(answer, index, "exec", effect="unsafe"))
        pictured = ToolResult((Text("shot"), PICTURE))
        result = (
            pictured if draw(st.booleans()) else text_result(f"result {number} " + "x" * draw(st.integers(0, 9_000)))
        )
        log.add(ToolResultEntry(answer, index, "exec", result))


def _compact(log: Builder, keep: int) -> None:
    previous, seen = visible(log.entries)
    if place := cut(seen, keep, weigh=lambda entry: 10):
        summary = f"{previous} {' '.join(entry.id for entry in seen[:place])}"
        log.add(stand_in(summary, seen[:place], seen[place:], before=None, tokens=100))


def _crash(log: Builder, kept: int) -> None:
    """What was committed is what there is."""
    del log.entries[kept:]
    log.leaf = ""
    for entry in log.entries:
        log.leaf = next_leaf(log.leaf, entry)


def asked(entries: list[Entry]) -> list[Entry]:
    """The log, and a message of a person to which a model is to answer."""
    log = Builder()
    log.entries = list(entries)
    _crash(log, len(entries))
    log.user("go on")
    return log.entries


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
names = st.lists(words, max_size=3).map(tuple)
numbers = st.integers(0, 2**53)
_unknown = words.map(lambda word: Opaque(Raw(b'{"type":"x-new", "v" : 1.50, "w":' + msgspec.json.encode(word) + b"}")))
_images = st.builds(Image, blob=words, mime=words, name=words, width=numbers, height=numbers)
_texts = st.builds(Text, text=words, signature=words)
_said = st.lists(st.one_of(_texts, _images, _unknown), max_size=3).map(tuple)
_answered = st.lists(
    st.one_of(
        _texts,
        st.builds(Thinking, text=words, signature=words, redacted=words),
        st.builds(ToolCall, id=words, name=words, arguments=words, fault=words, signature=words),
        _unknown,
    ),
    max_size=3,
).map(tuple)
_usage = st.builds(Usage, input=numbers, output=numbers, cache_read=numbers, cache_write=numbers, cost=numbers)
_intents = st.none() | st.builds(FileIntent, path=words, before=words, after=words)
_details = st.builds(Details, summary=words, path=words, exit_code=st.none() | numbers, duration=numbers)
_specs = st.builds(ToolSpec, name=words, description=words, parameters=st.just(Raw(b'{"type":"object"}')))
_sections = st.builds(Section, name=words, text=words, sources=st.lists(st.tuples(words, words), max_size=2).map(tuple))
_names = st.lists(words, max_size=3).map(tuple)
PAYLOADS: dict[type[Payload], st.SearchStrategy[Payload]] = {
    UserEntry: st.builds(
        UserEntry, message=st.builds(UserMessage, content=_said, runtime=words), sender=words, inbox=numbers
    ),
    AssistantEntry: st.builds(
        AssistantEntry,
        message=st.builds(
            AssistantMessage,
            content=_answered,
            producer=st.sampled_from((A, B)),
            stop=st.sampled_from(("stop", "length", "cancelled")),
            usage=_usage,
        ),
    ),
    Tombstone: st.builds(Tombstone, sha256=words, at=numbers, why=words, rest=st.just(Raw(b'{"kind":"x"}'))),
    UndoPoint: st.builds(UndoPoint, files=numbers, size=numbers, unkept=_names, refused=words),
    Rollback: st.builds(Rollback, turn=words, mark=words, row=numbers, files=_names, count=numbers),
    GoalEntry: st.builds(GoalEntry, text=words, state=st.sampled_from(("open", "done")), progress=words, steps=numbers),
    TrustOnce: st.builds(TrustOnce),
    RecallSwitch: st.builds(RecallSwitch, on=st.booleans()),
    PlanEntry: st.builds(PlanEntry, steps=st.lists(st.builds(PlanStep, text=words), max_size=3).map(tuple)),
    ToolStarted: st.builds(
        ToolStarted,
        assistant=words,
        index=numbers,
        name=words,
        effect=st.sampled_from(("file", "unsafe")),
        intent=_intents,
    ),
    ToolResultEntry: st.builds(
        ToolResultEntry,
        assistant=words,
        index=numbers,
        name=words,
        result=st.builds(ToolResult, content=_said, details=_details, is_error=st.booleans()),
    ),
    Compaction: st.builds(
        Compaction,
        summary=words,
        first_kept=words,
        tokens_before=numbers,
        how=st.sampled_from(("summary", "reduced", "window")),
        read=names,
        changed=names,
        error=words,
    ),
    Flush: st.builds(Flush, upto=words, path=words, lines=names, error=words),
    Prune: st.builds(Prune, targets=names, how=st.sampled_from(("soft", "hard"))),
    ImageAged: st.builds(ImageAged, targets=names),
    PromptEntry: st.builds(
        PromptEntry,
        sections=st.lists(_sections, max_size=2).map(tuple),
        tools=st.lists(_specs, max_size=2).map(tuple),
        tier=st.sampled_from(("full", "tiny", "none")),
        mode=st.sampled_from(("full", "minimal", "none")),
        model=words,
        reason=words,
    ),
    Note: st.builds(Note, text=words, origin=words),
    ModelChange: st.builds(ModelChange, model=words),
    Label: st.builds(Label, target=words, label=words),
    Leaf: st.builds(Leaf, target=words),
}
