"""A recorder of events: what watchers saw of a turn, as a short stable text for snapshots."""

from __future__ import annotations

from limpet.types.event import (
    AimsChanged,
    AnswerReset,
    Done,
    Event,
    ModelEvent,
    Notice,
    TextDelta,
    ThinkingDelta,
    ToolBegan,
    ToolEnded,
    ToolProgress,
    TurnEnded,
    TurnStarted,
)


class Trace:
    """Collects events; `text` is one line each. Neighbouring deltas join, ids become `S1 T1 C1 …` in order of sight."""

    def __init__(self) -> None:
        self.events: list[Event | ModelEvent] = []

    def emit(self, event: Event | ModelEvent) -> None:
        """An `Emit`."""
        self.events.append(event)

    @property
    def text(self) -> str:
        names: dict[str, str] = {}
        lines: list[str] = []
        kept: list[Event | ModelEvent] = []
        for event in self.events:
            last = kept[-1] if kept else None
            if isinstance(event, TextDelta) and isinstance(last, TextDelta):
                kept[-1] = TextDelta(last.text + event.text)
            elif isinstance(event, ThinkingDelta) and isinstance(last, ThinkingDelta):
                kept[-1] = ThinkingDelta(last.text + event.text)
            else:
                kept.append(event)
        for event in kept:
            lines.append(_line(event, names))
        return "\n".join(lines)


def _short(names: dict[str, str], prefix: str, *, name: str) -> str:
    if name not in names:
        names[name] = f"{prefix}{1 + sum(known.startswith(prefix) for known in names.values())}"
    return names[name]


def _line(event: Event | ModelEvent, names: dict[str, str]) -> str:
    match event:
        case TextDelta(text):
            return f"text {text!r}"
        case ThinkingDelta(text):
            return f"thinking {text!r}"
        case AnswerReset(reason):
            return f"reset {reason!r}"
        case Notice(text, level):
            return f"notice {level} {text!r}"
        case Done(message):
            calls = "".join(f" {call.name}({call.arguments})" for call in message.calls)
            return f"answer {message.stop} {message.text!r}{calls}"
        case TurnStarted(session, turn, attempt):
            return f"turn {_short(names, 'T', name=turn)} of {_short(names, 'S', name=session)} attempt {attempt}"
        case ToolBegan(call, name, arguments):
            return f"began {_short(names, 'C', name=call)} {name} {arguments}"
        case ToolProgress(call, text):
            return f"progress {_short(names, 'C', name=call)} {text!r}"
        case ToolEnded(call, name, text, is_error):
            return f"ended {_short(names, 'C', name=call)} {name} {'error' if is_error else 'ok'} {text!r}"
        case AimsChanged(_, goal, plan):
            return f"aims {goal!r}" + "".join(f" {step.state}:{step.text!r}" for step in plan)
        case TurnEnded(_, turn, state, text, _, error):
            return f"turn {_short(names, 'T', name=turn)} {state} {text!r}" + (f" error {error!r}" if error else "")
