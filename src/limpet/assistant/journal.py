"""The journal of a turn: each step of the loop as one commit, and the log in memory kept equal to the one on disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from msgspec import structs

from limpet.assistant import goal_budget, subagents
from limpet.assistant.services import Services
from limpet.assistant.soul import changes_soul
from limpet.assistant.turn_undo import TurnUndo
from limpet.assistant.unattended import mandate_of, responded, to_be_told
from limpet.errors import TurnStopped
from limpet.session.keys import UNASKED
from limpet.session.log import Log
from limpet.session.project import UNKNOWN_OUTCOME
from limpet.store import commits, inbox, outbox, peers, sessions, turns, usage
from limpet.store import subagents as helpers
from limpet.store.commits import End, TurnWriter
from limpet.store.driver import Store
from limpet.store.sql import Connection
from limpet.tools.disk import discard
from limpet.types.content import Text
from limpet.types.entry import (
    AssistantEntry,
    Compaction,
    Entry,
    GoalEntry,
    Note,
    Payload,
    PlanEntry,
    ToolResultEntry,
    ToolStarted,
)
from limpet.types.envelope import Address, Beside, Inbound, InboxRow, Part, PartKind, Trust
from limpet.types.event import AimsChanged, Notice
from limpet.types.ids import new_id
from limpet.types.job import Outward
from limpet.types.message import AssistantMessage, Producer, Request
from limpet.types.ports import PendingCall
from limpet.types.tool import Effect, FileIntent, ToolResult, text_result

CUT_OFF = "The answer above was cut off at the model's output limit. Say “go on” for the rest."
REDUCED = (
    "The conversation had become too long for the model, and no summary could be made of its older part. I go on "
    "without it; all of it stays in the log. /new begins anew, /model chooses a model with more room."
)
SOUL_CHANGED = "I have just changed SOUL.md, which says who I am. /rollback shows what, and takes it back."
MORE = "[More has come in meanwhile: going on with that.]"
STOPPED = "Stopped by the user before it was finished; what it had done so far is unknown."


@dataclass(slots=True)
class TurnJournal:
    """Implements the `Journal` port for one turn. `last` is the text of its newest answer."""

    services: Services
    writer: TurnWriter
    log: Log
    last: str = ""
    _answered: set[int] = field(default_factory=set[int])
    _asked: Request | None = None
    _alert: str = ""
    _undo: TurnUndo = field(init=False)

    def __post_init__(self) -> None:
        self._undo = TurnUndo(self.services, self.writer, self.log)

    def asked(self, request: Request) -> None:
        """The next answer is one to this request."""
        self._asked = request

    async def assistant(self, answer: AssistantMessage, *, reservation: str) -> tuple[PendingCall, ...]:
        await self._append(
            lambda connection, now: commits.answer(
                connection, self.writer, self._entry(answer), reservation=reservation, trust="owner", now=now
            )
        )
        return self.log.pending()

    async def started(self, call: PendingCall, *, effect: Effect, intent: FileIntent | None) -> None:
        payload = ToolStarted(
            assistant=call.assistant, index=call.index, name=call.call.name, effect=effect, intent=intent
        )
        point = await self._undo.keep(effect, intent)
        payloads = (payload,) if point is None else (point, payload)
        now = self.services.clock.now()
        made = await self.services.store.write(
            lambda connection: [commits.started(connection, self.writer, one, now=now) for one in payloads]
        )
        self.log.extend(made)
        if not self.services.store.read(lambda connection: sessions.fresh(connection, self.writer.lease)):
            raise sessions.lost(self.writer.lease)

    async def result(
        self,
        call: PendingCall,
        result: ToolResult,
        *,
        records: Sequence[Payload] = (),
        posts: Sequence[Outward] = (),
    ) -> None:
        intent = next((one.intent for one in self.log.pending() if one.name == call.name), None)
        soul = intent is not None and not result.is_error and changes_soul(self.services.workspace, intent)
        said = SOUL_CHANGED if soul else ""
        parts = _told_people(self.services.store, self.writer.turn, said) if said else ()
        await self._append_all((_result(call, result), *records), trust=result.trust, posts=posts, parts=parts)
        if said:
            self.services.emit(Notice(said, level="warning"))
            self.services.nudges.send()
        if posts:
            self.services.nudges.send()
        if any(isinstance(record, GoalEntry | PlanEntry) for record in records):
            aims = self.log.aims
            goal = aims.open.text if aims.open else ""
            self.services.emit(AimsChanged(self.writer.lease.session, goal, aims.plan))

    async def note(self, text: str, *, origin: str) -> None:
        await self._append(
            lambda connection, now: commits.note(connection, self.writer, Note(text=text, origin=origin), now=now)
        )

    async def discard(self, answer: AssistantMessage, *, reservation: str) -> None:
        if reservation:
            await self.services.store.write(
                lambda connection: usage.settle(connection, reservation, answer.usage, state="done")
            )

    async def absorb(self) -> int:
        if told := goal_budget.told(self.log.aims, self.log.aims.used_up()):
            await self._append_all(told, trust="owner")
            self.services.emit(Notice(goal_budget.OVER, level="warning"))
        store, key = self.services.store, self.writer.key
        if not store.read(lambda connection: inbox.queued(connection, key)):
            return 0
        now = self.services.clock.now()
        made = await store.write(lambda connection: commits.absorb(connection, self.writer, now=now))
        self.log.extend(made)
        return len(made)

    async def wait(self, approvals: Sequence[str]) -> bool:
        """Give the session back until the owner has settled one of `approvals`; False when he has meanwhile.

        Raises `TurnStopped` when he said stop.
        """
        await self._undo.finish()
        turn, now = self.writer.turn, self.services.clock.now()
        if self.services.store.read(lambda connection: turns.stop_requested(connection, turn)):
            raise TurnStopped("Stopped.")
        waits = await self.services.store.write(
            lambda connection: commits.wait(connection, self.writer, approvals, now=now)
        )
        if waits:
            self._undo.over()
            self.services.nudges.send()
        return waits

    async def end(self, answer: AssistantMessage | None, *, reservation: str) -> bool:
        rows = self._rows()
        said: list[tuple[str, PartKind]] = []
        mandate = mandate_of(rows)
        text = answer.text if answer is not None else responded(self.log, self.writer.turn) or ""
        if text.strip():
            self.last = text
            told, self._alert = (text, "") if mandate is None else to_be_told(self.services, text, mandate)
            if told:
                said.append((told, "reply"))
        if answer is not None and text.strip():
            if answer.stop == "length":
                self.services.emit(Notice(CUT_OFF, level="warning"))
                said.append((CUT_OFF, "notice"))
            if self._reduced():
                said.append((REDUCED, "notice"))
        records = goal_budget.told(self.log.aims, self.log.aims.used_up(answer))
        if records or goal_budget.was_told(self.log, self.writer.turn):
            said.append((goal_budget.OVER, "notice"))
        entry = self._entry(answer) if answer is not None else None
        parts = self._parts(said, rows)
        over = await self._end(End(state="done", answer=entry, reservation=reservation, records=records, parts=parts))
        if not over and parts:
            self._answered.update(row.id for row in rows)
        return over

    async def cancel(self, shown: str, producer: Producer) -> None:
        """End the turn on the owner's word: what was shown of the answer is kept, open calls are answered."""
        said = None
        if shown.strip() and not self.log.pending():
            said = self._entry(AssistantMessage(content=(Text(shown),), producer=producer, stop="cancelled"))
        await self._end(End(state="cancelled", answer=said, results=self._unanswered(STOPPED), error="stopped"))

    async def fail(self, notice: str, *, kind: str, interrupted: bool = False) -> None:
        """End the turn without an answer; everybody who waits for one is told `notice`.

        Nobody waits for that of a job: its ledger tells the owner when it is not tried again. That of a hook is told to
        the owner, who has not seen that it came.
        """
        self.last = notice
        turn, rows = self.writer.turn, self._rows()
        results = self.services.store.read(lambda connection: subagents.unanswered(connection, turn))
        said: list[tuple[str, PartKind]] = [(notice, "notice"), *([(results, "reply")] if results else [])]
        await self._end(
            End(
                state="interrupted" if interrupted else "failed",
                results=self._unanswered(UNKNOWN_OUTCOME),
                parts=(
                    *self._parts(said, [row for row in rows if row.inbound.mandate is None]),
                    *_failed_hooks(rows, notice, home=self.services.store.read(peers.owner_home)),
                ),
                error=f"{kind}: {notice}",
            )
        )

    def _entry(self, answer: AssistantMessage) -> AssistantEntry:
        """The answer with what its request had beside the log."""
        if self._asked is None:
            return AssistantEntry(answer)
        asked = self._asked
        return AssistantEntry(answer, sampling=asked.sampling, tool_choice=asked.tool_choice, rhythm=asked.rhythm)

    def _reduced(self) -> bool:
        """Whether the conversation was shortened in this turn without a summary."""
        for entry in reversed(self.log.entries):
            if entry.turn != self.writer.turn:
                return False
            if isinstance(entry.payload, Compaction) and entry.payload.how == "reduced":
                return True
        return False

    def _unanswered(self, text: str) -> tuple[ToolResultEntry, ...]:
        for call in self.log.pending():
            if call.intent is not None:
                discard(call.intent, call.name)
        return tuple(_result(call, text_result(text, is_error=True)) for call in self.log.pending())

    def _rows(self) -> list[InboxRow]:
        turn = self.writer.turn
        return self.services.store.read(lambda connection: inbox.of_turn(connection, turn))

    def _parts(self, said: Sequence[tuple[str, PartKind]], rows: Sequence[InboxRow]) -> tuple[Part, ...]:
        """What is said, for every chat with one of the events `rows` that this turn has not answered yet; a helper
        answers in none."""
        if subagents.is_helper(self.writer.key):
            return ()
        fresh = [row for row in rows if row.id not in self._answered] or rows
        fresh = [row for row in fresh if row.inbound.mandate is None or row.inbound.mandate.deliver]
        return _parts(said, [row.inbound for row in fresh], alert=self._alert)

    async def _append_all(
        self,
        payloads: Sequence[Payload],
        *,
        trust: Trust,
        posts: Sequence[Outward] = (),
        parts: Sequence[Part] = (),
    ) -> None:
        now = self.services.clock.now()

        def work(connection: Connection) -> list[Entry]:
            for part in parts:
                outbox.queue(connection, part, session=self.writer.lease.session, turn=self.writer.turn, now=now)
            return commits.result(connection, self.writer, payloads, trust=trust, now=now, posts=posts)

        made = await self.services.store.write(work)
        self.log.extend(made)

    async def _append(self, commit: Callable[[Connection, int], Entry]) -> None:
        now = self.services.clock.now()
        self.log.extend([await self.services.store.write(lambda connection: commit(connection, now))])

    async def _end(self, ending: End) -> bool:
        await self._undo.finish()
        now, store, key = self.services.clock.now(), self.services.store, self.writer.key
        if subagents.is_helper(key) and (helper := store.read(lambda connection: helpers.of_key(connection, key))):
            ending = structs.replace(ending, outcome=subagents.outcome_of(helper, ending, self.log))
        made, over = await store.write(lambda connection: commits.end(connection, self.writer, ending, now=now))
        self.log.extend(made)
        if over:
            self._undo.over()
            self.services.nudges.send()
        else:
            self.services.emit(Notice(MORE))
        return over


def _result(call: PendingCall, result: ToolResult) -> ToolResultEntry:
    return ToolResultEntry(assistant=call.assistant, index=call.index, name=call.call.name, result=result)


def _told_people(store: Store, turn: str, said: str) -> tuple[Part, ...]:
    """A notice for the people whom a turn works for; for the owner, where it works by itself and answers nobody."""
    home = store.read(peers.owner_home)
    found = [
        structs.replace(one, address=home) if home and one.answered_at.channel in UNASKED else one
        for one in subagents.origins_of(store, turn)
    ]
    return _parts([(said, "notice")], found)


def _failed_hooks(rows: Sequence[InboxRow], notice: str, *, home: Address | None) -> tuple[Part, ...]:
    """What the owner is told when the turn for events of other programs has failed."""
    found = [(row, row.inbound.mandate) for row in rows]
    text = "What came over the hook **{name}** was not done: {notice}"
    return tuple(
        Part(
            home,
            text.format(name=mandate.name, notice=notice),
            f"hook:{row.id}:failed",
            "notice",
        )
        for row, mandate in found
        if home is not None and mandate is not None and mandate.purpose == "hook"
    )


def _parts(said: Sequence[tuple[str, PartKind]], heard: Sequence[Inbound], *, alert: str = "") -> tuple[Part, ...]:
    """What is said, for every chat with one of the events `heard`; a reply under the key `alert`, where it has one."""
    answered = {one.answered_at: one.message if one.group else "" for one in heard}
    return tuple(
        Part(
            address=address,
            text=text,
            key=alert if kind == "reply" and alert else new_id("p"),
            kind=kind,
            beside=Beside(reply_to=message),
        )
        for text, kind in said
        for address, message in answered.items()
    )
