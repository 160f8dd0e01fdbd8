"""Entries: the append-only log of a session.

An entry has a place (`seq`, its order in the session), a name (`id`) and a `parent`: entries form a tree whose
leaf is the newest *tree* entry unless a later `Leaf` points elsewhere. `Label` and `Leaf` are facts beside the tree.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Raw, Struct

from limpet.types.content import Opaque
from limpet.types.envelope import Trust
from limpet.types.message import AssistantMessage, Rhythm, Sampling, ToolChoice, UserMessage
from limpet.types.tool import Effect, FileIntent, ToolResult, ToolSpec


class UserEntry(Struct, frozen=True, tag_field="kind", tag="user", omit_defaults=True):
    message: UserMessage
    sender: str = ""
    inbox: int = 0


class AssistantEntry(Struct, frozen=True, tag_field="kind", tag="assistant", omit_defaults=True):
    """`sampling`, `tool_choice` and `rhythm` are the request's, which with the log before it they give again."""

    message: AssistantMessage
    sampling: Sampling = Sampling()
    tool_choice: ToolChoice = "auto"
    rhythm: Rhythm = "slow"


class ToolStarted(Struct, frozen=True, tag_field="kind", tag="tool_started", omit_defaults=True):
    """The intent to run call number `index` of the assistant entry `assistant`, committed before the act."""

    assistant: str
    index: int
    name: str
    effect: Effect
    intent: FileIntent | None = None


class ToolResultEntry(Struct, frozen=True, tag_field="kind", tag="tool_result", omit_defaults=True):
    assistant: str
    index: int
    name: str
    result: ToolResult


class Compaction(Struct, frozen=True, tag_field="kind", tag="compaction", omit_defaults=True):
    """Everything before the entry `first_kept` is represented by `summary` from here on.

    `how` it came about: written by a model, or by `reduced` rules after `error`, or as a sliding `window` with no
    summary. `read` and `changed` are the files that the covered part touched, earlier compactions included.
    """

    summary: str
    first_kept: str
    tokens_before: int = 0
    how: Literal["summary", "reduced", "window"] = "summary"
    read: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    error: str = ""


class Flush(Struct, frozen=True, tag_field="kind", tag="flush", omit_defaults=True):
    """What is worth remembering of the entries up to `upto`, as `lines` for the day's notes in the file `path`.

    Committed before the file is written, so that a crash loses nothing. `error`: why there are none.
    """

    upto: str
    path: str = ""
    lines: tuple[str, ...] = ()
    error: str = ""


class Prune(Struct, frozen=True, tag_field="kind", tag="prune", omit_defaults=True):
    """Tool results (by entry id) that are sent shortened (soft) or as a placeholder (hard) from here on; monotone."""

    targets: tuple[str, ...]
    how: Literal["soft", "hard"]


class ImageAged(Struct, frozen=True, tag_field="kind", tag="image_aged"):
    """Entries (by id) whose images are sent as `[image: name, WxH]` from here on; monotone."""

    targets: tuple[str, ...]


class Section(Struct, frozen=True, omit_defaults=True):
    """One section of a prompt. `sources` are the files it was made of with their SHA-256 at that time."""

    name: str
    text: str
    sources: tuple[tuple[str, str], ...] = ()


class PromptEntry(Struct, frozen=True, tag_field="kind", tag="prompt", omit_defaults=True):
    """The snapshot of system prompt and tools that all later requests use byte for byte."""

    sections: tuple[Section, ...]
    tools: tuple[ToolSpec, ...]
    tier: Literal["full", "tiny", "none"] = "full"
    mode: Literal["full", "minimal", "none"] = "full"
    model: str = ""
    reason: str = "new session"

    @property
    def system(self) -> str:
        return "\n\n---\n\n".join(section.text for section in self.sections if section.text)


class Note(Struct, frozen=True, tag_field="kind", tag="note", omit_defaults=True):
    """Something Limpet itself tells the model, sent with the user's next message; `origin` says which part wrote it."""

    text: str
    origin: str = ""


class UndoPoint(Struct, frozen=True, tag_field="kind", tag="undo_point", omit_defaults=True):
    """What is kept of the workspace before this turn's next act: `files` with `size` bytes, but not those `unkept`.

    `refused` says why nothing is kept; then the turn cannot be undone. The copies themselves lie outside of the log.
    """

    files: int = 0
    size: int = 0
    unkept: tuple[str, ...] = ()
    refused: str = ""


class Rollback(Struct, frozen=True, tag_field="kind", tag="rollback", omit_defaults=True):
    """What `turn` changed is about to be taken back, on the owner's word in the inbox row `row`; before the act.

    `mark` names the point with which this can be taken back itself. `files` are the first ones of `count`.
    """

    turn: str
    mark: str
    row: int
    files: tuple[str, ...] = ()
    count: int = 0


class PlanStep(Struct, frozen=True, omit_defaults=True):
    """One step of a plan."""

    text: str
    state: Literal["pending", "in_progress", "done"] = "pending"


class GoalEntry(Struct, frozen=True, tag_field="kind", tag="goal", omit_defaults=True):
    """What the agent is after over many turns, as a whole: the newest one on the path counts.

    `progress` is how far it says it is. `dollars` and `steps` (answers of the model) are its budget, 0 = no limit;
    `exhausted` once that is used up and was told.
    """

    text: str
    state: Literal["open", "done", "dropped"] = "open"
    progress: str = ""
    dollars: float = 0.0
    steps: int = 0
    exhausted: bool = False


class PlanEntry(Struct, frozen=True, tag_field="kind", tag="plan", omit_defaults=True):
    """The steps on the way, as a whole: the newest one on the path counts. Without steps there is no plan."""

    steps: tuple[PlanStep, ...] = ()


class TrustOnce(Struct, frozen=True, tag_field="kind", tag="trust_once"):
    """On the owner's word the taint rule rests during the next turn."""


class RecallSwitch(Struct, frozen=True, tag_field="kind", tag="recall_switch"):
    """On the owner's word memories are recalled in this session from here on, or none are."""

    on: bool


class ModelChange(Struct, frozen=True, tag_field="kind", tag="model_change"):
    """From here on the session speaks to `model` (`provider/model`)."""

    model: str


class Tombstone(Struct, frozen=True, tag_field="kind", tag="tombstone"):
    """What is stored in place of an erased payload: the SHA-256 of its stored form, when (UTC ms) and why.

    `rest` is the same kind of payload without its content, so that calls keep their results and ids their targets.
    Readers of the log are given `rest` as the payload, and the hash as `Entry.erased`.
    """

    sha256: str
    at: int
    why: str
    rest: Raw


class Label(Struct, frozen=True, tag_field="kind", tag="label"):
    target: str
    label: str


class Leaf(Struct, frozen=True, tag_field="kind", tag="leaf"):
    target: str


Payload = (
    UserEntry
    | AssistantEntry
    | ToolStarted
    | ToolResultEntry
    | Compaction
    | Flush
    | Prune
    | ImageAged
    | PromptEntry
    | Note
    | UndoPoint
    | Rollback
    | GoalEntry
    | PlanEntry
    | TrustOnce
    | RecallSwitch
    | ModelChange
    | Tombstone
    | Label
    | Leaf
)


class Entry(Struct, frozen=True, weakref=True):
    """One line of a session's log. `at` is UTC milliseconds, for people; order is `seq`.

    `erased` is the SHA-256 of what it said before the owner had it erased.
    """

    session: str
    seq: int
    id: str
    parent: str
    at: int
    turn: str
    payload: Payload | Opaque
    trust: Trust = "owner"
    erased: str = ""
