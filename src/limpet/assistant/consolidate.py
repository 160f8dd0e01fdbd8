"""Consolidation: what lasts of the day's notes goes into MEMORY.md, what is contradicted or doubled goes out of it.

Off every conversation: requests of their own, whose cost is that of the session `memory`. What strangers had a part in
is not even shown to the model. Nothing is written before the whole answer is there, and it all can be taken back.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence

from msgspec import Struct, structs

from limpet.assistant import consolidation_answer as answers
from limpet.assistant.consolidation_answer import Wish, Wishes
from limpet.assistant.inquiry import Inquiry, inquiry_with
from limpet.assistant.remembering import Remembering
from limpet.assistant.services import Services
from limpet.errors import LimpetError, ModelError, UserError
from limpet.llm.tokens import estimate
from limpet.memory import consolidated
from limpet.memory.book import LONGEST
from limpet.memory.changes import Hunk
from limpet.memory.entries import Remembered, entries_of, lines_of, lost, marked, normal, one_line, too_many
from limpet.prompt.templates import template
from limpet.store import chores, usage
from limpet.types.content import Text
from limpet.types.event import Notice
from limpet.types.message import UserMessage

log = logging.getLogger(__name__)

SESSION = "memory"
"""The session that its requests are accounted to."""
WARN_AT = 3
"""Failures in a row after which the owner is told."""
ALONE = 900_000
"""Milliseconds for which one process has the work to itself."""
LEAST = 500
"""Tokens of notes that must fit beside the memory."""
ANSWER = 3_000
"""Tokens of the answer."""
INSIST = "Call the tool save_memory now, with nothing else. That is the only answer that counts."


class UselessAnswerError(LimpetError):
    """The model gave nothing that could be taken for what is to be remembered."""


class Consolidated(Struct, frozen=True):
    """What came of it: the difference in MEMORY.md, how many notes were looked at, what was left alone and why."""

    diff: str = ""
    notes: int = 0
    left: tuple[str, ...] = ()


async def when_due(services: Services, key: str) -> bool:
    """Consolidate the memory of the conversations under `key`, if it is time; whether that was tried.

    A boundary: what goes wrong is told in a notice after some failures, and tried again later.
    """
    known = Remembering(services, key)
    rules, now, scope = services.memory, services.clock.now(), known.scope.name
    if not rules.every:
        return False
    state = services.store.read(lambda connection: consolidated.state(connection, scope))
    waiting = fresh(known)
    count, today = len(waiting), f"{rules.local(now):%Y-%m-%d}"
    soon = count >= rules.lines
    if not soon and all(_day(one) == today for one in waiting):
        return False  # the day is not over
    if not count or now < state.not_before or not (soon or now - state.at >= rules.every):
        return False
    name = f"consolidate:{scope}"
    if not await services.store.write(lambda connection: chores.take_on(connection, name, now=now, every=ALONE)):
        return False  # another process does it
    try:
        done = await consolidate(known)
    except LimpetError as error:
        log.warning("Memory was not consolidated: %s", error.present())
        return True
    if done.diff:
        services.emit(Notice(f"Memory was consolidated; /memory undo takes it back.\n{done.diff}"))
    return True


def fresh(known: Remembering) -> list[Remembered]:
    """The entries of day notes that no consolidation has looked at, oldest first, without those of strangers."""
    scope = known.scope.name
    seen = known.services.store.read(lambda connection: consolidated.seen(connection, scope))
    entries = [one for file in known.book.days() for one in entries_of(known.book.read(file), file)]
    return [one for one in entries if one.trust != "external" and one.id not in seen]


async def consolidate(known: Remembering, *, dry_run: bool = False) -> Consolidated:
    """Consolidate now. Raises `ModelError`, `UserError`, `UselessAnswerError`: then nothing was written."""
    services, scope = known.services, known.scope.name
    try:
        notes, wishes = await _wanted(known)
        if not notes:
            return Consolidated()
        plan = _plan(known, notes, wishes)
        if dry_run:
            return plan.told
        if plan.hunks:
            ids = ",".join(one.id for one in notes)
            await known.change(plan.hunks, source="consolidation", key=f"consolidation:{scope}:{_hash(ids)}")
    except (ModelError, UserError, UselessAnswerError) as error:
        if not dry_run:
            await _failed(services, scope, error)
        raise
    now = services.clock.now()
    await services.store.write(
        lambda connection: consolidated.succeed(connection, scope, [one.id for one in notes], now=now)
    )
    return plan.told


async def _failed(services: Services, scope: str, error: LimpetError) -> None:
    """Later again; the owner is told when that happens too often."""
    why, now = error.present(), services.clock.now()
    count = await services.store.write(lambda connection: consolidated.fail(connection, scope, error=why, now=now))
    if count % WARN_AT == 0:
        text = f"Memory could not be consolidated {count} times; notes stay as they are. The last time: {why}"
        services.emit(Notice(text, level="warning"))


async def _wanted(known: Remembering) -> tuple[list[Remembered], Wishes]:
    """The notes that the model was shown, and what it wants done."""
    services = known.services
    waiting = fresh(known)
    if not waiting:
        return [], Wishes()
    appointed = await services.model_for("summary", tools=True)
    inquiry = inquiry_with(services, appointed.model, SESSION)
    task = template("consolidate")
    lasting = [_shown(one) for one in _lasting(known)]
    factor = inquiry.factor * appointed.model.profile.token_factor
    window = appointed.model.profile.window or 32_000
    room = int((window - min(ANSWER, window // 4)) / factor) - estimate("\n".join([task, *lasting])) - 300
    if room < LEAST:
        raise UserError(
            f"{known.scope.lasting[0]} is too long for the model's window of {window:,} tokens.",
            hint="Choose a model with a larger one for models.purposes.summary, or take something out.",
        )
    notes: list[Remembered] = []
    for one in waiting:
        room -= estimate(_shown(one)) + 2
        if room < 0 and notes:
            break
        notes.append(one)
    parts = (task, "MEMORY:", *(lasting or ["(empty)"]), "", "NOTES:", *map(_shown, notes))
    return notes, await _ask(inquiry, "\n".join(parts), max_tokens=min(ANSWER, window // 4))


async def _ask(inquiry: Inquiry, text: str, *, max_tokens: int) -> Wishes:
    """Ask for a call; once more with only that in mind; then take what was said as text."""
    tools = (answers.spec(),) if inquiry.model.profile.tools else ()
    request = structs.replace(inquiry.plain(text, max_tokens=max_tokens), tools=tools)
    said = ""
    for _ in range(2):
        message = await inquiry.answer(request)
        for call in message.calls:
            if call.name == answers.NAME and not call.fault and (made := answers.from_call(call.arguments)) is not None:
                return made
        said = message.text or said
        request = structs.replace(request, messages=(UserMessage((Text(f"{text}\n\n{INSIST}"),)),))
    found = answers.from_text(said)
    if found is None:
        raise UselessAnswerError("The model said nothing that could be remembered.")
    return found


class _Plan(Struct, frozen=True):
    hunks: tuple[Hunk, ...]
    told: Consolidated


def _plan(known: Remembering, notes: Sequence[Remembered], wishes: Wishes) -> _Plan:
    """The changes, on the files as they are now."""
    book, services = known.book, known.services
    file = known.scope.lasting[0]
    before = book.read(file)
    at = f"{services.memory.local(services.clock.now()):%Y-%m-%d %H:%M}"
    redact = services.redactor.redact
    wanted = [structs.replace(one, text=one_line(redact(one.text))[:LONGEST]) for one in wishes.lines]
    wanted = [one for one in wanted if normal(one.text)]
    page = _Page(before, file, {normal(one.text) for one in _lasting(known)})
    for wish in wanted:
        page.take(wish, _source(wish, notes), at=at)
    for name in wishes.drop:
        page.drop(name.strip(" []"))
    after = page.text()
    if too_many(len(lost(before, after)), len(entries_of(before, file))):
        page = _Page(before, file, {normal(one.text) for one in _lasting(known)})
        for wish in wanted:
            page.take(structs.replace(wish, instead=""), _source(wish, notes), at=at)
        page.left.append("over a quarter of the entries would have gone, so none did")
        after = page.text()
    past = [redact(wishes.history), *(f"No longer in {file}: {one_line(text)}" for text in page.gone)]
    paragraph = " ".join(part for part in past if part)
    hunks = book.rewritten(file, after)
    if paragraph:
        old = lines_of(book.read(known.scope.history))
        gap = ("",) if old and old[-1].strip() else ()
        entry = Hunk(known.scope.history, after=(*gap, f"[{at}] {paragraph}"), anchor=tuple(old[-2:]))
        hunks.append(entry)
    diff = _diff(before, after, file)
    return _Plan(tuple(hunks), Consolidated(redact(diff), len(notes), tuple(page.left)))


def _diff(before: str, after: str, file: str) -> str:
    from difflib import unified_diff  # only for a consolidation

    return "\n".join(unified_diff(before.splitlines(), after.splitlines(), file, file, n=0, lineterm=""))


class _Page:
    """MEMORY.md while it is being changed. `gone` are the words that leave it, `left` what was not done and why."""

    def __init__(self, text: str, file: str, known: set[str]) -> None:
        self._lines = lines_of(text) or ["# Memory", ""]
        self._entries = {one.id: one for one in entries_of(text, file)}
        self._known = known
        self._instead: dict[str, str] = {}
        self._added: list[str] = []
        self.gone: list[str] = []
        self.left: list[str] = []

    def take(self, wish: Wish, source: Remembered, *, at: str) -> None:
        """Add a line, or put it in the place of an entry that is older and not the owner's own."""
        if normal(wish.text) in self._known:
            return
        self._known.add(normal(wish.text))
        line = marked(wish.text, at=at, source=f"notes of {_day(source)}")
        old = self._entries.get(wish.instead.strip(" []"))
        if old is None:
            self._added.append(line)
        elif not old.source:
            self.left.append(f"{old.id} is yours and stays")
            self._added.append(line)
        elif _since(old) > _day(source):
            self.left.append(f"{old.id} is newer than the note and stays")
        elif old.id not in self._instead:
            self._instead[old.id] = line
            self.gone.append(old.text)

    def drop(self, name: str) -> None:
        """Take an entry out, unless it is the owner's own."""
        old = self._entries.get(name)
        if old is None or name in self._instead:
            return
        if not old.source:
            self.left.append(f"{old.id} is yours and stays")
            return
        self._instead[name] = ""
        self.gone.append(old.text)

    def text(self) -> str:
        lines = list(self._lines)
        for name, line in sorted(self._instead.items(), key=lambda one: -self._entries[one[0]].start):
            old = self._entries[name]
            lines[old.start : old.end] = [line] if line else []
        below = lines[-1].strip() and not lines[-1].lstrip().startswith(("-", "*", "+"))
        gap = [""] if self._added and below else []
        return "\n".join([*lines, *gap, *self._added]) + "\n"


def _source(wish: Wish, notes: Sequence[Remembered]) -> Remembered:
    """The newest of the notes that a line was made of; of all that were shown when it does not say."""
    ids = {one.strip(" []") for one in wish.sources}
    found = [one for one in notes if one.id in ids] or list(notes)
    return max(found, key=_day)


def _lasting(known: Remembering) -> list[Remembered]:
    return [one for file in known.scope.lasting for one in entries_of(known.book.read(file), file)]


def _day(note: Remembered) -> str:
    return note.file.rpartition("/")[2].removesuffix(".md")


def _since(entry: Remembered) -> str:
    """The day from which an entry of what lasts is."""
    return entry.source.removeprefix("notes of ")[:10] if entry.source.startswith("notes of ") else entry.at[:10]


def _shown(entry: Remembered) -> str:
    day = _since(entry) if entry.source.startswith("notes of ") else entry.at[:10] or _day(entry)[:10]
    return f"[{entry.id}] ({day}) {' '.join(entry.text.split())}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def spent(known: Remembering) -> str:
    """What consolidation has cost so far and how it goes, in a line."""
    store, scope = known.services.store, known.scope.name
    used = store.read(lambda connection: usage.of_session(connection, SESSION))
    found = store.read(lambda connection: consolidated.state(connection, scope))
    last = f"{known.services.memory.local(found.at):%Y-%m-%d %H:%M}" if found.at else "never"
    unknown = used.cost is None and used.total > 0
    cost = "price unknown" if unknown else f"${(used.cost or 0) / 1e6:.4f}"
    failed = f"; failed {found.failures} times since: {found.error}" if found.failures else ""
    waiting = len(fresh(known))
    return f"consolidation: last {last}, {waiting} notes wait, {used.total:,} tokens and {cost} so far in all{failed}"
