"""A session in memory: the ports of the loop without a disk, for replays, tests, examples and experiments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from limpet.session.log import Log
from limpet.types.content import Text
from limpet.types.entry import (
    AssistantEntry,
    Entry,
    Note,
    Payload,
    PromptEntry,
    Section,
    ToolResultEntry,
    ToolStarted,
    UserEntry,
)
from limpet.types.job import Outward
from limpet.types.message import AssistantMessage, Request, ToolChoice, UserMessage
from limpet.types.ports import PendingCall
from limpet.types.tool import Effect, FileIntent, ToolResult, ToolSpec


class MemorySession:
    """Implements `View` and `Journal`. `waiting` are messages that come in while the turn runs, `posts` went out.

    It goes on with `log`, or begins with a prompt of `system` and `tools`.
    """

    def __init__(
        self, *, tools: Iterable[ToolSpec] = (), system: str = "You are Limpet.", log: Log | None = None
    ) -> None:
        self.log = log or Log()
        self.waiting: list[str] = []
        self.posts: list[Outward] = []
        self.ended = False
        if log is None:
            self.log.extend([self.entry(PromptEntry(sections=(Section("identity", system),), tools=tuple(tools)))])

    def say(self, text: str) -> None:
        """A message of the user."""
        self.add(UserEntry(UserMessage((Text(text),))))

    async def request(self, *, tool_choice: ToolChoice = "auto") -> Request:
        prompt = self.log.prompt
        assert prompt is not None
        return Request(
            session="memory",
            system=prompt.system,
            tools=prompt.tools,
            messages=self.log.messages(),
            tool_choice=tool_choice,
        )

    async def overflowed(self, limit: int) -> bool:
        return False

    def pending(self) -> tuple[PendingCall, ...]:
        return self.log.pending()

    async def assistant(self, answer: AssistantMessage, *, reservation: str) -> tuple[PendingCall, ...]:
        self.add(AssistantEntry(answer))
        return self.log.pending()

    async def started(self, call: PendingCall, *, effect: Effect, intent: FileIntent | None) -> None:
        self.add(ToolStarted(call.assistant, call.index, call.call.name, effect=effect, intent=intent))

    async def result(
        self, call: PendingCall, result: ToolResult, *, records: Sequence[Payload] = (), posts: Sequence[Outward] = ()
    ) -> None:
        self.posts += posts
        self.add(ToolResultEntry(call.assistant, call.index, call.call.name, result=result))
        for record in records:
            self.add(record)

    async def note(self, text: str, *, origin: str) -> None:
        self.add(Note(text, origin=origin))

    async def absorb(self) -> int:
        count = len(self.waiting)
        while self.waiting:
            self.say(self.waiting.pop(0))
        return count

    async def discard(self, answer: AssistantMessage, *, reservation: str) -> None:
        pass

    async def end(self, answer: AssistantMessage | None, *, reservation: str) -> bool:
        if answer is not None:
            self.add(AssistantEntry(answer))
        self.ended = not await self.absorb()
        return self.ended

    @property
    def last(self) -> str:
        """The text of the newest answer."""
        answers = [e.payload.message for e in self.log.entries if isinstance(e.payload, AssistantEntry)]
        return answers[-1].text if answers else ""

    def kinds(self) -> list[str]:
        """The kinds of all entries, in order."""
        return [str(entry.payload.__struct_config__.tag) for entry in self.log.entries]

    def add(self, payload: Payload) -> None:
        """Append to the log."""
        self.log.extend([self.entry(payload)])

    def entry(self, payload: Payload) -> Entry:
        """The entry that `payload` becomes."""
        entries = self.log.entries
        seq, parent = len(entries) + 1, entries[-1].id if entries else ""
        return Entry(session="memory", seq=seq, id=f"e{seq}", parent=parent, at=seq, turn="t1", payload=payload)
