"""What a person on a terminal sees of a turn while it runs, and the same as JSON lines for programs."""

from __future__ import annotations

from typing import TextIO

import msgspec

from limpet.cli.terminal import hand_over, paint, printable, width, wrapped
from limpet.session.aims import plan_lines
from limpet.types.envelope import OutboxRow
from limpet.types.event import (
    AimsChanged,
    AnswerReset,
    Event,
    Notice,
    TextDelta,
    ToolBegan,
    ToolEnded,
    ToolProgress,
    TurnEnded,
    TurnStarted,
)

_encoder = msgspec.json.Encoder()


class JsonView:
    """Every event as one line of JSON on standard output."""

    def emit(self, event: Event) -> None:
        hand_over(_encoder.encode(event).decode() + "\n")


class TerminalView:
    """Notices and tools on `notes` (standard error), the answer as it comes on `out` when it is `live`."""

    def __init__(self, out: TextIO, notes: TextIO, *, live: bool) -> None:
        self._out = out
        self._notes = notes
        self._live = live
        self._shown = ""
        self._noted: set[str] = set()
        self._midline = False
        self._names: dict[str, str] = {}

    def emit(self, event: Event) -> None:
        match event:
            case TurnStarted():
                self._shown = ""
                self._noted.clear()
            case TextDelta(text=text) if self._live:
                self._out.write(printable(text))
                self._out.flush()
                self._shown += text
                self._midline = not text.endswith("\n")
            case AnswerReset(reason=reason):
                self._shown = ""
                self._note(f"[once more: {reason}]")
            case Notice(text=text, level=level):
                self._noted.add(text)
                self._note(text if level == "info" else f"! {text}")
            case ToolBegan(call=call, name=name, arguments=arguments):
                self._shown = ""
                self._names[call] = f"{name} {arguments}"
            case ToolProgress(text=text):
                self._note(f"  {text}")
            case ToolEnded(call=call, name=name, text=text, is_error=is_error, duration=duration):
                said = self._names.pop(call, name)
                first = text.strip().splitlines()[0] if is_error and text.strip() else ""
                self._note(f"· {said}{f' ({duration} ms)' if duration >= 100 else ''}{f': {first}' if first else ''}")
            case AimsChanged(goal=goal, plan=plan):
                self._note("\n".join(part for part in (f"Goal: {goal}" if goal else "", plan_lines(plan)) if part))
            case TurnEnded(state=state):
                self._end_line()
                if state == "cancelled":
                    self._note("Stopped.")
            case _:
                pass

    def reply(self, row: OutboxRow) -> None:
        """Show a delivered part, unless it is what has just been shown. Notices are not answers: they go to notes."""
        self._end_line()
        text = row.text.strip()
        at = self._shown.find(text) if text else -1
        if at >= 0:
            self._shown = self._shown[at + len(text) :]
        elif row.kind == "reply":
            self._out.write(printable(row.text.rstrip()) + "\n")
            self._out.flush()
        elif row.text not in self._noted:
            self._note(f"! {row.text}")

    def _note(self, text: str) -> None:
        self._end_line()
        lines = printable(text).splitlines() or [""]
        room = max(width() - 1, 20)
        if text[:1] == "·":
            lines = [line if len(line) <= room else line[: room - 1] + "…" for line in lines]
        elif self._notes.isatty():
            lines = wrapped("\n".join(lines)).splitlines()
        self._notes.write("".join(paint(line, "dim", stream=self._notes) + "\n" for line in lines))
        self._notes.flush()

    def _end_line(self) -> None:
        """Whatever comes next begins a line of its own."""
        if self._midline:
            self._out.write("\n")
            self._out.flush()
            self._midline = False
