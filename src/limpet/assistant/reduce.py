"""Keeping a conversation within its model's window: one path for every occasion (DESIGN 7).

    cold cache            old results and images are sent shorter from now on          Prune, ImageAged
    over the limit        the older part is flushed to the notes and summarised        Flush, Compaction, PromptEntry
    no summary to be had  the same by rules alone, and the owner is told               Compaction(how="reduced")
    still over            a smaller part is kept, results are cleared                  Compaction, Prune

Every decision is an entry; requests only read them. A decision must make the next request smaller, or it is not made.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from msgspec import Struct, structs

from limpet.assistant import flush
from limpet.assistant.archive import summary_before
from limpet.assistant.digest import Digest, Material, UselessDigestError, digest
from limpet.assistant.inquiry import Inquiry, inquiry_with
from limpet.assistant.services import Services
from limpet.assistant.weigh import is_cold
from limpet.errors import ModelError, UserError
from limpet.llm.purposes import purpose_of
from limpet.session.cut import cut
from limpet.session.log import Log
from limpet.session.prune import aged_images, pruned, prunes
from limpet.session.room import Room, room_of
from limpet.session.stand_in import stand_in, without_model
from limpet.store import commits
from limpet.store.sessions import Lease
from limpet.types.entry import Compaction, Entry, Payload, Prune, ToolResultEntry
from limpet.types.envelope import Trust, lowest
from limpet.types.event import Notice
from limpet.types.hook import Compacted
from limpet.types.message import Request
from limpet.types.ports import Model
from limpet.types.usage import Usage

log = logging.getLogger(__name__)

ATTEMPTS = 3
"""Times that one request is made smaller, after which its error is the owner's."""
BACK_OFF = 10 * 60 * 1000
"""Milliseconds after a summary that could not be had, in which none is asked for again."""
OVERFLOW_SHARE = 0.5
"""Share of a request that was too long, and whose limit nobody named, which is taken for the window."""


class Place(Struct, frozen=True):
    """Where a reduction writes: under which key and lease, for which turn (empty: a command)."""

    key: str
    lease: Lease
    turn: str = ""


class Reducer:
    """Makes the requests of one session small enough. `build` gives the next request as the log has it now."""

    def __init__(
        self,
        services: Services,
        session_log: Log,
        place: Place,
        *,
        model: Model,
        build: Callable[[], Request],
        spend: Callable[[Usage], None] = lambda used: None,
    ) -> None:
        self._services = services
        self._log = session_log
        self._place = place
        self._model = model
        self._profile = model.profile
        self._build = build
        self._spend = spend
        self._window = model.profile.window
        self._overflows = 0

    async def before_request(self) -> None:
        """Prune when that is free, and compact when the next request would not fit.

        Pruning is free when the cache is cold; where there is none, pressure decides.
        """
        tokens = self.tokens()
        pressed = tokens > self._room.limit and not self._profile.cache_ttl
        if (self._is_cold() or pressed) and await self._prune(tokens):
            tokens = self.tokens()
        for harder in range(ATTEMPTS):
            if tokens <= self._room.limit or not await self._compact(tokens, harder=harder):
                return
            tokens = self.tokens()

    async def overflowed(self, limit: int) -> bool:
        """The provider refused the request as too long, naming `limit` (0 = none): make it smaller.

        False when nothing more can be done.
        """
        tokens = self._services.weights.estimated(self._build(), self._profile)  # what was counted proved wrong
        harder, self._overflows = self._overflows, self._overflows + 1
        if harder >= ATTEMPTS:
            return False
        if 0 < limit < (self._window or limit + 1):
            self._window = limit
        else:
            self._window = int(min(tokens, self._room.window) * OVERFLOW_SHARE)
        return await self._compact(tokens, harder=harder)

    async def compact(self, focus: str) -> tuple[int, int] | None:
        """Compact on the owner's word, keeping `focus` above all. Tokens before and after; None: there is too little.

        Raises `ModelError`, `BudgetError` and `UselessDigestError` when no summary is to be had: nothing changes then.
        """
        before = self.tokens()
        parts = self._parts(self._room.keep // 2)
        if parts is None or sum(map(self._weigh, parts.covered)) < self._room.summary // 2:
            return None
        made = await self._digest(parts, focus=focus)
        await self._commit(parts, made, before=before)
        return before, self.tokens()

    def tokens(self) -> int:
        """Tokens of the next request; what providers counted is left aside once a request proved too long."""
        weights, request = self._services.weights, self._build()
        if self._overflows:
            return weights.estimated(request, self._profile)
        return weights.request(request, self._log, self._profile)

    @property
    def _room(self) -> Room:
        return room_of(self._window)

    def _is_cold(self) -> bool:
        return is_cold(self._log, self._profile, self._services.clock.now(), key=self._place.key)

    async def _prune(self, tokens: int) -> bool:
        _, visible = self._log.visible()
        payloads: list[Payload] = [*prunes(visible, tokens, self._room), *aged_images(visible)]
        if payloads:
            await self._write(payloads, trust="owner")
        return bool(payloads)

    async def _compact(self, tokens: int, *, harder: int) -> bool:
        """Make the conversation smaller; False when it cannot be. Later attempts (`harder`) keep less."""
        parts = self._parts(self._room.keep >> harder)
        if parts is None:
            return await self._clear_results()
        if self._services.rules.sliding:
            await self._write([Compaction(summary="", first_kept=parts.kept[0].id, how="window")], trust="owner")
            await self._tell(tokens)
            return True
        made, error = None, self._no_digest(harder)
        if not error:
            self._services.emit(Notice("Summarising the older part of this conversation …"))
            try:
                made = await self._digest(parts)
            except (ModelError, UselessDigestError, UserError) as failure:
                error = failure.present()
                log.warning("No summary of session %s: %s", self._place.lease.session, error)
        made = made or Digest((), without_model(parts.covered, parts.previous, tokens=self._room.summary))
        await self._commit(parts, made, before=tokens, error=error)
        if self.tokens() > self._room.limit:
            await self._clear_results()
        after = self.tokens()
        self._services.emit(Notice(f"Shortened: {tokens:,} tokens are {after:,} now. All of it stays in the log."))
        return after < tokens

    def _parts(self, keep: int) -> _Parts | None:
        """The visible log in two; None when there is no place to cut it."""
        previous, visible = self._log.visible()
        place = cut(visible, keep, weigh=self._weigh, turns=self._services.rules.sliding)
        if place == 0:
            return None
        return _Parts(visible[:place], visible[place:], previous, _newest_compaction(visible) if previous else None)

    def _weigh(self, entry: Entry) -> int:
        return self._services.weights.entry(entry, self._profile)

    def _no_digest(self, harder: int) -> str:
        """Why no summary is asked for; empty when one is."""
        last = next((one for one in reversed(self._log.entries) if isinstance(one.payload, Compaction)), None)
        if last is None or not isinstance(last.payload, Compaction) or not last.payload.error:
            return "The summary before did not make enough room." if harder else ""
        recent = self._services.clock.now() - last.at < BACK_OFF
        return last.payload.error if recent else ""

    async def _digest(self, parts: _Parts, *, focus: str = "") -> Digest:
        """The summary of the covered part, what is worth remembering of it being in the notes when this returns."""
        line = self._log.path()
        until = parts.kept[0].id
        waiting = flush.unflushed(line, until)
        material = flush.to_read(parts.covered, waiting)
        inquiry = await self._inquiry()
        own = inquiry.model is self._model
        warm = own and not self._is_cold() and self._window == self._profile.window and self._profile.cache_ttl > 0
        found = await digest(
            inquiry,
            Material(material, previous=parts.previous, focus=focus, live=self._build() if warm else None),
            self._room if own else room_of(inquiry.model.profile.window),
        )
        if waiting:
            await flush.catch_up(self._services, self._log)
            upto = self._log.leaf if found.whole else waiting[-1].id
            trust = lowest((flush.trust_of(material), _trust(parts, found)))
            place = self._place
            made = flush.flush_of(
                self._services, found.notes, trust=trust, upto=upto, key=place.key, session=place.lease.session
            )
            await self._write([made], trust=trust)
            if error := await flush.write(self._services, made):
                await self._write([structs.replace(made, error=error)], trust=trust)
        return found

    async def _inquiry(self) -> Inquiry:
        """Asks the model for summaries: the conversation's own unless the owner has named one."""
        services, named = self._services, purpose_of(self._services.purposes, "summary").model
        model = await services.models.get(named) if named else self._model
        return inquiry_with(services, model, self._place.lease.session, spend=self._spend)

    async def _commit(self, parts: _Parts, digest: Digest, *, before: int, error: str = "") -> None:
        """Log the compaction, and a new snapshot where the prompt would read otherwise by now."""
        earlier = parts.before.payload if parts.before else None
        earlier = earlier if isinstance(earlier, Compaction) else None
        made = stand_in(digest.summary, parts.covered, parts.kept, before=earlier, tokens=self._room.keep // 2)
        made = structs.replace(made, tokens_before=before, how="reduced" if error else "summary", error=error)
        payloads: list[Payload] = [made]
        current = self._log.prompt
        archived = summary_before(self._services.store, self._place.key)
        fresh = self._services.prompting.snapshot(
            self._profile, reason="compaction", before=archived.text, key=self._place.key
        )
        if current is None or (fresh.sections, fresh.tools) != (current.sections, current.tools):
            payloads.append(fresh)
        await self._write(payloads, trust=_trust(parts, digest))
        await self._tell(before)

    async def _tell(self, before: int) -> None:
        """Tell hooks that the conversation is shorter than it was."""
        if (hooks := self._services.hooks) is not None:
            await hooks.tell(Compacted(self._place.lease.session, self._place.key, before, self.tokens()))

    async def _clear_results(self) -> bool:
        """The last resort: placeholders for all results but those of the newest calls."""
        _, visible = self._log.visible()
        _, done = pruned(visible)
        results = [entry for entry in visible if isinstance(entry.payload, ToolResultEntry)]
        fresh = _assistant_of(results[-1]) if results else ""
        old = tuple(entry.id for entry in results if _assistant_of(entry) != fresh and entry.id not in done)
        if old:
            await self._write([Prune(old, how="hard")], trust="owner")
            return True
        newest = tuple(entry.id for entry in results if entry.id not in pruned(visible)[0] | done)
        if newest:
            await self._write([Prune(newest, how="soft")], trust="owner")
        return bool(newest)

    async def _write(self, payloads: Sequence[Payload], *, trust: Trust) -> None:
        services, place, leaf = self._services, self._place, self._log.leaf
        now = services.clock.now()
        writing = commits.Addition(lease=place.lease, turn=place.turn, leaf=leaf, trust=trust)
        made = await services.store.write(lambda connection: commits.add(connection, writing, payloads, now=now))
        self._log.extend(made)


class _Parts(Struct, frozen=True):
    """A visible log in two: what a compaction covers, and what it keeps; what stood for the part before."""

    covered: list[Entry]
    kept: list[Entry]
    previous: str
    before: Entry | None


def _trust(parts: _Parts, digest: Digest) -> Trust:
    """How far a summary is trusted: as little as anything that the model has read for it."""
    read = [*parts.covered, *((parts.before,) if parts.before else ()), *(parts.kept if digest.whole else ())]
    return flush.trust_of(read)


def _newest_compaction(visible: Sequence[Entry]) -> Entry | None:
    return next((entry for entry in reversed(visible) if isinstance(entry.payload, Compaction)), None)


def _assistant_of(entry: Entry) -> str:
    return entry.payload.assistant if isinstance(entry.payload, ToolResultEntry) else ""
