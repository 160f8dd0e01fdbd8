"""What a person at a full terminal sees of a conversation: answers as Markdown while they come, tools at work, diffs.

Implements the same two words as `TerminalView`: `emit` for events, `reply` for delivered parts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager

from rich.console import RenderableType

from limpet.cli import chat_render as render
from limpet.cli.chat_answer import Answer
from limpet.cli.chat_screen import Screen
from limpet.session.aims import plan_lines
from limpet.types.entry import PlanStep
from limpet.types.envelope import OutboxRow
from limpet.types.event import (
    AimsChanged,
    AnswerReset,
    Event,
    Notice,
    TextDelta,
    ThinkingDelta,
    ToolBegan,
    ToolEnded,
    ToolProgress,
    TurnEnded,
    TurnStarted,
)

FRAME = 0.1
"""Seconds between two drawings."""
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
FOLDED = 2
"""Lines of a result up to which it is not folded."""
KEPT = 10
"""Folded results that can be unfolded later."""


class _Running:
    """A call at work."""

    def __init__(self, said: str) -> None:
        self.said = said
        self.began = time.monotonic()
        self.progress = ""


class ChatView:
    """`changed` gives the diff of a call that has ended (empty: none); `standing` is a word on cost and context."""

    def __init__(self, screen: Screen) -> None:
        self.changed: Callable[[str], str] = lambda call: ""
        self.standing = ""
        self.verbose = False
        self.plan: tuple[PlanStep, ...] = ()
        self._screen = screen
        self._busy = asyncio.Event()
        self._began = 0.0
        self._answer = Answer(self._paragraph)
        self._thought = ""
        self._tools: dict[str, _Running] = {}
        self._folded: list[tuple[str, str]] = []
        self._noted: set[str] = set()

    @asynccontextmanager
    async def living(self) -> AsyncGenerator[None]:
        """Inside, what changes is drawn while a turn runs."""
        task = asyncio.create_task(self._tick())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self._screen.clear()

    @contextmanager
    def aside(self) -> Generator[None]:
        """Inside, somebody else uses the lower end of the screen."""
        self._answer.flush()
        with self._screen.aside():
            yield

    def emit(self, event: Event) -> None:
        match event:
            case TurnStarted():
                self._begin()
            case TextDelta(text=text):
                self._forget_thoughts()
                self._answer.add(text)
            case ThinkingDelta(text=text):
                self._thought += text
            case AnswerReset(reason=reason):
                self._answer.begin()
                self.note(f"[once more: {reason}]")
            case Notice(text=text, level=level):
                self._noted.add(text)
                self.note(text if level == "info" else f"! {text}", style="dim" if level == "info" else "yellow")
            case TurnEnded(state=state):
                self.rest()
                if state == "cancelled":
                    self.note("Stopped.")
            case _:
                self._act(event)

    def _act(self, event: Event) -> None:
        """What the agent does, and what it is after."""
        match event:
            case ToolBegan(call=call, name=name, arguments=arguments):
                self._answer.flush()
                self._answer.begin()
                self._tools[call] = _Running(render.call_line(name, arguments))
            case ToolProgress(call=call, text=text) if call in self._tools:
                self._tools[call].progress = text
            case ToolEnded():
                self._ended(event)
            case AimsChanged(goal=goal, plan=plan):
                self.plan = plan
                self.note("\n".join(part for part in (f"Goal: {goal}" if goal else "", plan_lines(plan)) if part))
            case _:
                pass

    def reply(self, row: OutboxRow) -> None:
        """Show a delivered part, unless it is what has just been shown."""
        self._answer.flush()
        if self._answer.covers(row.text):
            return
        if row.kind == "reply" and row.turn:
            self._paragraph(row.text)
        elif row.kind == "reply":  # of a command: laid out already
            self._put(render.block(row.text.rstrip(), ""))
        elif row.text not in self._noted:
            self.note(f"! {row.text}", style="yellow")

    def note(self, text: str, *, style: str = "dim") -> None:
        """A remark of Limpet's own."""
        self._answer.flush()
        self._put(render.block(text, style))

    def show(self, shown: RenderableType) -> None:
        """Something that stays, such as a diff."""
        self._answer.flush()
        self._put(shown)

    def rest(self) -> None:
        """Nothing runs any more."""
        self._busy.clear()
        self._tools.clear()
        self._forget_thoughts()
        self._answer.flush()
        self._screen.clear()

    def unfold(self) -> None:
        """Show results whole from now on, those folded so far first; or fold them again."""
        self.verbose = not self.verbose
        if not self.verbose:
            self.note("Results and thoughts are folded again.")
            return
        self.note("Results and thoughts are shown whole from now on (ctrl-o or /verbose folds them).")
        for said, text in self._folded:
            self._put(render.line(f"· {said}"))
            self._put(render.block(text, indent=2))
        self._folded.clear()

    def _begin(self) -> None:
        self._answer.begin()
        self._thought = ""
        self._tools.clear()
        self._noted.clear()
        self._began = time.monotonic()
        self._busy.set()

    def _ended(self, event: ToolEnded) -> None:
        running = self._tools.pop(event.call, None)
        said = running.said if running else event.name
        took = f" ({event.duration / 1000:.1f} s)" if event.duration >= 100 else ""
        self._answer.flush()
        text = event.text.strip()
        if event.is_error:
            self._put(render.line(f"✗ {said}{took}: {text.partition(chr(10))[0]}", "red"))
        else:
            self._put(render.line(f"· {said}{took}"))
        changed = "" if event.is_error else self.changed(event.call)
        if changed:
            self._put(render.diff(changed))
        elif text and (not event.is_error or "\n" in text):
            self._result(said, text)

    def _result(self, said: str, text: str) -> None:
        count = text.count("\n") + 1
        if self.verbose or (count <= FOLDED and len(text) <= 160):
            self._put(render.block(text, indent=2))
            return
        self._folded = [*self._folded, (said, text)][-KEPT:]
        self._put(render.line(f"  {count} lines, ctrl-o shows them" if count > 1 else f"  {text}"))

    async def _tick(self) -> None:
        while True:
            await self._busy.wait()
            self._answer.settle()
            self._screen.draw(self._live())
            await asyncio.sleep(FRAME)

    def _live(self) -> list[str]:
        """What changes: the end of the answer, tools at work, and that there is work at all."""
        columns, rows = self._screen.size
        mark = SPINNER[int((time.monotonic() - self._began) * 10) % len(SPINNER)]
        below: list[RenderableType] = [self._at_work(mark, one) for one in self._tools.values()]
        below += [render.line(f"    {one.progress}") for one in self._tools.values() if one.progress]
        if self._thought:
            below.append(render.line(f"∴ thinking, {len(self._thought.split())} words"))
        seconds = int(time.monotonic() - self._began)
        parts = [f"{mark} {seconds} s", "Ctrl-C stops", self._step(), self.standing]
        below.append(render.line(" · ".join(part for part in parts if part)))
        lower = [line for one in below[-(rows - 3) :] for line in render.lines_of(one, width=columns - 1)]
        return [*self._answer.growing(columns - 1)[-max(1, rows - 2 - len(lower)) :], *lower]

    def _at_work(self, mark: str, one: _Running) -> RenderableType:
        return render.line(f"{mark} {int(time.monotonic() - one.began)} s {one.said}", "cyan")

    def _step(self) -> str:
        now = next((step.text for step in self.plan if step.state == "in_progress"), "")
        done = sum(step.state == "done" for step in self.plan)
        return f"step {done + 1} of {len(self.plan)}: {now}" if now else ""

    def _forget_thoughts(self) -> None:
        """Thoughts are over: one line tells of them, or all of it."""
        thought, self._thought = self._thought.strip(), ""
        if thought and self.verbose:
            self._put(render.block(thought, "dim italic"))
        elif thought:
            self._folded = [*self._folded, ("thoughts", thought)][-KEPT:]
            self._put(render.line(f"∴ thought in {len(thought.split())} words, ctrl-o shows them"))

    def _paragraph(self, text: str) -> None:
        width = self._screen.size[0]
        self._screen.put(["", *render.lines_of(render.markdown(text), width=width)])

    def _put(self, shown: RenderableType) -> None:
        self._screen.put(render.lines_of(shown, width=self._screen.size[0]))
