"""The loop: ask the model, journal its answer, run its calls, journal the results, look at what came in, repeat.

It holds no messages and no disk: what to send comes from the view, what happened goes to the journal, and both live
in the log. So a turn that was killed goes on here as if nothing had happened: the first thing done is to finish the
calls that have no result.
"""

from __future__ import annotations

from contextlib import aclosing

from msgspec import Struct

from limpet.agent.execute import Execution
from limpet.agent.guard import CUT_OFF_LIMIT
from limpet.agent.limits import Budget
from limpet.agent.queue import Control
from limpet.errors import ContextOverflowError, UpstreamError
from limpet.types.event import AnswerReset, Done, Notice, TextDelta
from limpet.types.message import AssistantMessage, ToolChoice
from limpet.types.ports import Emit, Journal, Model, View

IN_PARTS = "Your last calls were cut off or unreadable. Do the work in parts: smaller calls, each far below the limit."
NUDGE = "Your last answer was empty. Answer the user now, in plain text, or call a tool."
LAST_WORDS = (
    "This turn has reached its limit of {limit}. No tool can be called any more. "
    "Tell the user what is done, what you found out, and what is left to do."
)


class Loop(Struct, frozen=True):
    """What the loop works with; each part is a port that tests and other programs may fill differently."""

    view: View
    model: Model
    execution: Execution
    budget: Budget
    control: Control
    journal: Journal
    emit: Emit


async def run(loop: Loop) -> None:
    """Run a turn to its end. Raises `TurnStopped`, `ModelError`, `LeaseLostError`, `StoreError`."""
    calls = loop.view.pending()
    while True:
        if calls:
            ends = await loop.control.run(loop.execution.batch(calls))
            if ends and await loop.journal.end(None, reservation=""):
                return
            await loop.journal.absorb()
        limit = loop.budget.exceeded()
        if limit:
            return await _last_words(loop, limit)
        done = await _ask_until_said(loop)
        answer = done.message
        if answer.calls:
            calls = await loop.journal.assistant(answer, reservation=done.reservation)
            faults = loop.execution.guard.faults(answer.calls)
            if faults >= CUT_OFF_LIMIT:
                await loop.control.run(loop.execution.batch(calls))
                return await _last_words(loop, f"{faults} answers in a row that could not be read")
            if faults == CUT_OFF_LIMIT - 1:
                await loop.control.run(loop.execution.batch(calls))
                await loop.journal.note(IN_PARTS, origin="guard")
                calls = ()
        elif await loop.journal.end(answer, reservation=done.reservation):
            return
        else:
            calls = ()


async def _ask_until_said(loop: Loop) -> Done:
    """An answer that says or does something: an empty one is asked for again, then with a nudge."""
    for attempt in range(3):
        if attempt == 2:
            await loop.journal.note(NUDGE, origin="empty answer")
        done = await loop.control.run(_ask(loop))
        if done.message.calls or done.message.text.strip():
            return done
        await loop.journal.discard(done.message, reservation=done.reservation)
    raise UpstreamError(
        "The model gave an empty answer three times.",
        provider=loop.model.profile.provider,
        hint="Say it again, or choose another model with /model.",
    )


async def _ask(loop: Loop, *, tool_choice: ToolChoice = "auto") -> Done:
    """One answer. A request that the provider finds too long is made smaller and sent again while that is possible."""
    while True:
        try:
            return await _stream(loop, tool_choice)
        except ContextOverflowError as error:
            if not await loop.view.overflowed(error.limit):
                raise


async def _stream(loop: Loop, tool_choice: ToolChoice) -> Done:
    """One request; its deltas go to the watchers, its answer is returned."""
    loop.control.shown.clear()
    request = await loop.view.request(tool_choice=tool_choice)
    async with aclosing(loop.model.stream(request)) as events:
        async for event in events:
            match event:
                case Done():
                    loop.budget.count(event.message.usage)
                    if warning := loop.budget.warning():
                        loop.emit(Notice(warning, level="warning"))
                    return event
                case TextDelta():
                    loop.control.shown.append(event.text)
                case AnswerReset():
                    loop.control.shown.clear()
                case _:
                    pass
            loop.emit(event)
    raise UpstreamError("The answer ended without its end mark.", provider=loop.model.profile.provider)


async def _last_words(loop: Loop, limit: str) -> None:
    """End a turn at a limit with a useful partial answer, asked for without tools."""
    loop.emit(Notice(f"Limit reached: {limit}.", level="warning"))
    await loop.journal.note(LAST_WORDS.format(limit=limit), origin="limit")
    done = await loop.control.run(_ask(loop, tool_choice="none"))
    answer = done.message
    if answer.calls or not answer.text.strip():
        text = tuple(block for block in answer.content if block not in answer.calls)
        answer = AssistantMessage(content=text, producer=answer.producer, stop="stop", usage=answer.usage)
    await loop.journal.end(answer, reservation=done.reservation)
