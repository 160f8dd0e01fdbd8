"""One turn of a session: the loop between its first and its last commit, and every way it can end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from msgspec import Struct, structs

from limpet.agent import loop
from limpet.agent.execute import Execution
from limpet.agent.hooks import WatchedView
from limpet.agent.limits import Budget
from limpet.agent.loop import Loop
from limpet.agent.queue import Control
from limpet.assistant import flush, subagents, unattended
from limpet.assistant.approvals import TurnApprovals, Unasked
from limpet.assistant.journal import TurnJournal
from limpet.assistant.memory_desk import MemoryDesk
from limpet.assistant.memory_scope import scope_of
from limpet.assistant.reduce import Place
from limpet.assistant.scope import ScopedPolicy
from limpet.assistant.services import Services
from limpet.assistant.taint import TaintPolicy
from limpet.assistant.unattended import mandate_of
from limpet.assistant.view import Asking, SessionView
from limpet.assistant.vision import DescribingView
from limpet.errors import ContextOverflowError, ModelError, TurnStopped, TurnWaits, UserError
from limpet.llm.purposes import Purpose, purpose_of, sampling_for
from limpet.prompt.snapshot import tier_for
from limpet.session.log import Log
from limpet.store import inbox, sessions, usage
from limpet.store.commits import TurnWriter
from limpet.types.envelope import InboxRow, Mandate
from limpet.types.event import TurnEnded, TurnStarted
from limpet.types.hook import SessionBegan, TurnBegan, TurnFinished
from limpet.types.message import Sampling
from limpet.types.ports import Approvals, Model, ToolContext, View
from limpet.types.profile import Profile
from limpet.types.tool import FileIntent


class Run(Struct, frozen=True):
    """A turn that has been begun or resumed: its `writer` holds the lease, `log` is all there is so far."""

    services: Services
    writer: TurnWriter
    log: Log
    model: Model
    attempt: int = 1


async def run(turn: Run, control: Control) -> TurnEnded | None:
    """Run a begun turn to its end, which is in the log and the outbox when this returns; None: it waits for its owner.

    Raises `LeaseLostError` and `StoreError`; the turn then stays as the log has it, for whoever comes next.
    """
    services, writer = turn.services, turn.writer
    services.emit(TurnStarted(session=writer.lease.session, turn=writer.turn, attempt=turn.attempt))
    await _tell_began(turn)
    journal = TurnJournal(services, writer, turn.log)
    if turn.attempt > 1:
        await flush.catch_up(services, turn.log)
    try:
        if not await _work(_loop(turn, journal, control), journal):
            return None
        ended = _ended(turn, "done", text=journal.last)
    except TurnStopped:
        if services.commands is not None:
            await services.commands.stop(writer.turn)
        shown = "".join(control.shown)
        await journal.cancel(shown, turn.model.profile.producer)
        ended = _ended(turn, "cancelled", text=shown, error="stopped")
    except (ModelError, UserError) as error:
        notice = services.redactor.redact(error.present())
        if isinstance(error, ContextOverflowError):
            notice += "\nThis conversation could not be made short enough. Begin anew with /new; what was said is kept."
        await journal.fail(notice, kind=type(error).__name__)
        ended = _ended(turn, "failed", text="", error=f"{type(error).__name__}: {notice}")
    services.emit(ended)
    if services.hooks is not None:
        await services.hooks.tell(TurnFinished(ended.session, ended.turn, ended.state, ended.text, ended.error))
    return ended


async def _tell_began(turn: Run) -> None:
    hooks, writer = turn.services.hooks, turn.writer
    if hooks is None:
        return
    if turn.attempt == 1 and turn.log.entries and turn.log.entries[0].turn == writer.turn:
        await hooks.tell(SessionBegan(writer.lease.session, writer.key))
    await hooks.tell(TurnBegan(writer.lease.session, writer.turn, turn.attempt))


async def _work(work: Loop, journal: TurnJournal) -> bool:
    """Run the loop to its end; False: to where nothing can be done before the owner has decided."""
    while True:
        try:
            await loop.run(work)
            return True
        except TurnWaits as waits:
            if await journal.wait(waits.approvals):
                return False


def _loop(turn: Run, journal: TurnJournal, control: Control) -> Loop:
    services, profile = turn.services, turn.model.profile
    session = turn.writer.lease.session
    spent = services.store.read(lambda connection: usage.of_turn(connection, turn.writer.turn))
    events = services.store.read(lambda connection: inbox.of_turn(connection, turn.writer.turn))
    mandate = mandate_of(events)
    key = turn.writer.key
    asked = _purpose(services, key, mandate)
    limits = subagents.limits_for(key, unattended.limits(services, mandate), services.rules.helpers)
    budget = Budget(limits, services.clock, spent=spent, local=profile.local)
    view: View = SessionView(
        services,
        turn.log,
        Place(key, turn.writer.lease, turn.writer.turn),
        model=turn.model,
        asking=Asking(
            _as_wanted(session_sampling(services, session, profile, purpose=asked), events), asked.tool_choice
        ),
        spend=budget.spend,
        asked=journal.asked,
    )
    if not profile.images and services.purposes.vision.model:
        view = DescribingView(view, services, turn.log, session=session, notes=journal, count=budget.spend)
    if services.hooks is not None and services.hooks.watches("before_request"):
        view = WatchedView(view, services.hooks, session=session, turn=turn.writer.turn, model=profile.reference)
    return Loop(
        view=view,
        model=turn.model,
        execution=Execution(
            services.tools,
            policy=TaintPolicy(
                ScopedPolicy(turn.log, turn.writer, services),
                turn.log,
                turn=turn.writer.turn,
                workspace=services.workspace,
            ),
            context=replace(
                tool_context(
                    services,
                    session=session,
                    profile=profile,
                    log=turn.log,
                    approvals=TurnApprovals(services, turn.writer),
                ),
                turn=turn.writer.turn,
                background=tier_for(profile.window) != "tiny" and not subagents.is_helper(key),
                memory=MemoryDesk(services, key, turn.log),
                veil=scope_of(key, services.memory.bound).veil,
            ),
            journal=journal,
            locks=services.locks,
            clock=services.clock,
            emit=services.emit,
            hooks=services.hooks,
        ),
        budget=budget,
        control=control,
        journal=journal,
        emit=services.emit,
    )


def tool_context(
    services: Services,
    *,
    session: str,
    profile: Profile,
    log: Log | None = None,
    approvals: Approvals | None = None,
) -> ToolContext:
    """What the tools of a turn may use; the execution of each call makes its own of it."""

    async def starting(intent: FileIntent | None) -> None:
        raise NotImplementedError  # the execution of each call puts its own here

    return ToolContext(
        key="",
        session=session,
        workspace=services.workspace,
        result_limit=result_limit(profile.window),
        blobs=services.blobs,
        redactor=services.redactor,
        approvals=approvals or Unasked(),
        starting=starting,
        progress=lambda line: None,
        seen=log.seen if log else {},
        goal=lambda: log.aims.open if log else None,
        background=tier_for(profile.window) != "tiny",
    )


def result_limit(window: int) -> int:
    """Characters a tool result may have (D5): 16k, 32k or 64k by window, never above 30 % of it.

    A token is taken for three characters here; an unknown window (0) for 128k tokens.
    """
    tokens = window or 128_000
    cap = 16_000 if tokens < 64_000 else 32_000 if tokens < 150_000 else 64_000
    return min(cap, int(tokens * 3 * 0.3))


def _purpose(services: Services, key: str, mandate: Mandate | None) -> Purpose:
    """How the model of a turn under `key` is asked."""
    if subagents.is_helper(key):
        return purpose_of(services.purposes, subagents.purpose_for(key))
    return unattended.purpose(services, mandate)


def session_sampling(services: Services, session: str, profile: Profile, *, purpose: Purpose | None = None) -> Sampling:
    """How the model is asked in a session: the owner's settings, and what was said with `/think`."""
    row = services.store.read(lambda connection: sessions.find(connection, session))
    asked = purpose or purpose_of(services.purposes, "chat")
    return sampling_for(asked, profile, thinking=(row.thinking if row else "") or None)


def _as_wanted(usual: Sampling, events: Sequence[InboxRow]) -> Sampling:
    """How the model is asked: as the newest event wants it where it says something, else as usual."""
    own = events[-1].inbound.sampling if events else None
    if own is None:
        return usual
    temperature = usual.temperature if own.temperature is None else own.temperature
    return structs.replace(usual, temperature=temperature, max_tokens=own.max_tokens or usual.max_tokens)


def _ended(turn: Run, state: str, *, text: str, error: str = "") -> TurnEnded:
    writer = turn.writer
    spent = turn.services.store.read(lambda connection: usage.of_turn(connection, writer.turn))
    return TurnEnded(
        session=writer.lease.session,
        turn=writer.turn,
        state="done" if state == "done" else "cancelled" if state == "cancelled" else "failed",
        text=text,
        usage=spent,
        error=error,
    )
