"""Replay: a recorded turn run again, against its recorded answers or another model. Nothing is done in the world.

Tools are answered from the record, messages come when they came, and nothing is written but the usage of a real model.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from msgspec import Struct, structs

from limpet.agent import loop
from limpet.agent.execute import Execution
from limpet.agent.limits import Budget
from limpet.agent.loop import Loop
from limpet.agent.memory import MemorySession
from limpet.agent.queue import Control
from limpet.assistant.services import Services
from limpet.assistant.turn import tool_context
from limpet.errors import InputError, ModelError, RequestError
from limpet.session.log import Log
from limpet.session.recording import Recording, difference, given, lines, requests_of
from limpet.types.entry import AssistantEntry, Entry, Payload, ToolResultEntry
from limpet.types.event import Done, ModelEvent, TextDelta
from limpet.types.message import AssistantMessage, Request, ToolChoice
from limpet.types.ports import Model, PendingCall
from limpet.types.profile import Profile
from limpet.types.tool import ToolResult, text_result
from limpet.types.usage import NO_USAGE, Usage

NOT_RECORDED = "This call is not in the record, so it was not run. Go on without its result."


class Replayed(Struct, frozen=True):
    """What came of a replay: the `difference` from the record (empty: none), what it used, and how it failed, if so."""

    difference: tuple[str, ...]
    usage: Usage = NO_USAGE
    error: str = ""

    @property
    def same(self) -> bool:
        return not self.difference and not self.error


async def replay(services: Services, recording: Recording, *, model: Model | None, texts: bool) -> Replayed:
    """Run a recorded turn with `model`, or with its recorded answers when that is None.

    `texts`: words count too, not only what was called. Raises `InputError` when there is nothing to replay.
    """
    if model is None and not recording.answers:
        raise InputError("No answer was recorded in this turn.", hint="Name a model to replay it with: --model.")
    model = model or RecordedModel(recording)
    for blob in recording.blobs.values():
        await services.blobs.put(blob)
    session = ReplayedSession(recording, asking=requests_of(recording)[:1])
    budget = Budget(services.limits, services.clock, local=model.profile.local)
    error = ""
    try:
        await loop.run(
            Loop(
                view=session,
                model=model,
                execution=RecordedExecution(services, recording, session, profile=model.profile),
                budget=budget,
                control=Control(),
                journal=session,
                emit=lambda event: None,
            )
        )
    except ModelError as failure:
        error = failure.present()
    made = lines(session.during, texts=texts)
    return Replayed(tuple(difference(lines(recording.during, texts=texts), made)), session.usage, error)


class RecordedModel:
    """Gives the recorded answers in their order, each only to the very request that it was the answer to."""

    def __init__(self, recording: Recording) -> None:
        self._answers = list(zip(requests_of(recording), recording.answers, strict=True))

    @property
    def profile(self) -> Profile:
        producer = self._answers[0][1].producer
        return Profile(provider=producer.provider, wire="openai_chat", model=producer.model)

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        if not self._answers:
            raise RequestError("The record has no further answer.", provider="record")
        wanted, answer = self._answers.pop(0)
        if request != structs.replace(wanted, session=request.session):
            raise RequestError("The request is another one than the recorded one.", provider="record")
        if answer.text:
            yield TextDelta(answer.text)
        yield Done(answer)

    async def close(self) -> None:
        pass


class ReplayedSession(MemorySession):
    """A session in memory that begins with what was there before the turn; what was given is given again."""

    def __init__(self, recording: Recording, *, asking: Sequence[Request]) -> None:
        self.usage = NO_USAGE
        self._turn = recording.turn
        self._given = given(recording)
        self._names = [entry.id for entry in recording.during if isinstance(entry.payload, AssistantEntry)]
        self._asking = asking[0] if asking else None
        self._seen = 0
        super().__init__(log=Log(recording.before, cache_key=recording.cache_key))

    @property
    def during(self) -> list[Entry]:
        return [entry for entry in self.log.entries if entry.turn == self._turn]

    async def request(self, *, tool_choice: ToolChoice = "auto") -> Request:
        self._give()
        request = await super().request(tool_choice=tool_choice)
        request = structs.replace(request, cache_key=self.log.cache_key)
        if self._asking is None:
            return request
        choice: ToolChoice = "none" if "none" in (tool_choice, self._asking.tool_choice) else "auto"
        asking = self._asking
        return structs.replace(request, sampling=asking.sampling, tool_choice=choice, rhythm=asking.rhythm)

    async def absorb(self) -> int:
        return self._give()

    async def end(self, answer: AssistantMessage | None, *, reservation: str) -> bool:
        if answer is not None:
            self.add(AssistantEntry(answer))
        self.ended = not self._give()
        return self.ended

    def add(self, payload: Payload) -> None:
        if isinstance(payload, AssistantEntry):
            self.usage += payload.message.usage
            self._seen += 1
        super().add(payload)

    def _give(self) -> int:
        """Put into the log what was given before the answer that comes next; how many entries those are."""
        due = [entry for group in self._given[: self._seen + 1] for entry in group]
        self._given[: self._seen + 1] = [[] for _ in self._given[: self._seen + 1]]
        for entry in due:
            self.log.extend([structs.replace(entry, seq=self.log.last_seq + 1, parent=self.log.leaf)])
        return len(due)

    def entry(self, payload: Payload) -> Entry:
        made = super().entry(payload)
        name = made.id
        if isinstance(payload, AssistantEntry) and self._seen <= len(self._names):
            name = self._names[self._seen - 1]
        return structs.replace(made, id=name, parent=self.log.leaf, seq=self.log.last_seq + 1, turn=self._turn)


class RecordedExecution(Execution):
    """Answers calls from the record: the same call gets the results it got, in their order."""

    def __init__(self, services: Services, recording: Recording, session: MemorySession, *, profile: Profile) -> None:
        super().__init__(
            (),
            policy=services.policy,
            context=tool_context(services, session="replay", profile=profile),
            journal=session,
            locks=services.locks,
            clock=services.clock,
            emit=lambda event: None,
        )
        self._session = session
        self._results: dict[tuple[str, str], list[ToolResult]] = {}
        calls = {
            (entry.id, index): (call.name, call.arguments)
            for entry in recording.during
            if isinstance(entry.payload, AssistantEntry)
            for index, call in enumerate(entry.payload.message.calls)
        }
        for entry in recording.during:
            if isinstance(entry.payload, ToolResultEntry):
                call = calls.get((entry.payload.assistant, entry.payload.index))
                if call is not None:
                    self._results.setdefault(call, []).append(entry.payload.result)

    async def one(self, call: PendingCall) -> bool:
        results = self._results.get((call.call.name, call.call.arguments), [])
        result = results.pop(0) if results else text_result(NOT_RECORDED, is_error=True)
        await self._session.result(call, result)
        return result.ends_turn
