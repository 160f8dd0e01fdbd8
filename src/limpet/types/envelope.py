"""Envelopes: what comes in from a channel and what goes out to one. All times are UTC milliseconds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from limpet.types.content import Image
from limpet.types.message import Sampling

Trust = Literal["owner", "peer", "tool", "external"]
TRUST_ORDER: tuple[Trust, ...] = ("external", "tool", "peer", "owner")
"""From the lowest to the highest."""


def lowest(trusts: Iterable[Trust]) -> Trust:
    """The trust of what was made out of parts: that of its least trusted one (DESIGN 9); `owner` of nothing."""
    return TRUST_ORDER[min(map(TRUST_ORDER.index, trusts), default=len(TRUST_ORDER) - 1)]


InboxState = Literal["queued", "claimed", "done", "refused"]
QueueMode = Literal["steer", "followup", "collect", "interrupt"]
"""What becomes of messages that come while a turn runs.

`steer`: they are taken into it between two steps. `followup`: each begins a turn of its own afterwards. `collect`: all
of them begin one afterwards. `interrupt`: the turn is stopped for them.
"""
OutboxState = Literal["queued", "attempting", "sent", "unknown", "failed", "expired"]


class Address(Struct, frozen=True, omit_defaults=True):
    """Where a message came from or goes to. `chat` is the platform's stable id, never a display name."""

    channel: str
    account: str = ""
    chat: str = ""
    thread: str = ""


class Attachment(Struct, frozen=True, omit_defaults=True):
    """A file by reference: `blob` is the SHA-256 (hex) of its bytes in the blob store."""

    blob: str
    name: str
    mime: str = "application/octet-stream"
    size: int = 0


class Body(Struct, frozen=True):
    """One message as the platform takes it: `markup` in its own language, `plain` without any."""

    markup: str
    plain: str


class Choice(Struct, frozen=True):
    """A button: `label` is what it shows, `says` what pressing it says for the person (up to 64 bytes)."""

    label: str
    says: str


Tier = Literal["", "minimal", "messaging", "coding", "full"]
"""Which tools there are for somebody; empty: as for everybody of their kind."""


class Mandate(Struct, frozen=True, omit_defaults=True):
    """What a job, or an event of another program (`hook`), may do in one of its runs: fixed when the job is made or the
    hook is configured, and carried by the event that begins a run.

    `channel` and `sender` say who made it, for policy. `model` is `provider/model`, empty = that of the `purpose`.
    `tools` are patterns of the tools there are, empty = all; `grants` of those that need no approval. `dollars` is the
    most that a run may cost, `minutes` the longest it may take, 0 = as any turn. Without `deliver` its answer goes
    nowhere, else to `to`, or where the event came from. `profile` replaces that of others than the owner.
    """

    job: str
    name: str
    purpose: Literal["cron", "heartbeat", "hook"] = "cron"
    channel: str = "cli"
    sender: str = ""
    model: str = ""
    tools: tuple[str, ...] = ()
    grants: tuple[str, ...] = ()
    dollars: float = 0.0
    deliver: bool = True
    to: Address | None = None
    profile: Tier = ""
    thinking: Literal["", "off", "low", "medium", "high"] = ""
    minutes: float = 0.0


class Inbound(Struct, frozen=True, omit_defaults=True):
    """One inbound event. `event` is the platform's id of it, unique per (channel, account).

    `message` is the platform's id of the message, `name` how the sender calls himself, `group` the name of the group
    it was said in (empty: between two). `mandate` is there when nobody says it, but a job of somebody. `sampling` says
    how the model is to be asked, where the program that says it wants that. `internal`: another conversation of the
    owner's agent says it; nothing that comes from outside has this.
    """

    address: Address
    event: str
    text: str
    sender: str = ""
    trust: Trust = "owner"
    images: tuple[Image, ...] = ()
    message: str = ""
    name: str = ""
    group: str = ""
    mandate: Mandate | None = None
    sampling: Sampling | None = None
    internal: bool = False

    @property
    def answered_at(self) -> Address:
        """Where its answer goes: where it came from, unless its mandate names another place."""
        return self.mandate.to if self.mandate is not None and self.mandate.to is not None else self.address


OWN_EVENTS = ("helper:", "session:")
"""How events begin that conversations make for each other."""


def from_outside(event: str) -> str:
    """The name of an event whose name others have chosen: never like one of our own."""
    return f"outside:{event}" if event.startswith(OWN_EVENTS) else event


class Post(Struct, frozen=True):
    """A message of one conversation to another, which lives under the session key `key`."""

    key: str
    inbound: Inbound


class InboxRow(Struct, frozen=True):
    """A stored inbound event. `key` is the session key it is for, `turn` names the turn that took it, once one did."""

    id: int
    key: str
    inbound: Inbound
    state: InboxState
    received: int
    turn: str = ""


PartKind = Literal["reply", "notice", "preview", "block", "report"]
"""A reply answers somebody, a notice tells something beside, a report tells the owner of a failure.

A preview is an answer shown while it is written, which the reply replaces; a block is a finished piece of one.
"""


class Beside(Struct, frozen=True, omit_defaults=True):
    """What goes with the text of a part. `reply_to` is the platform's id of the message that it answers."""

    reply_to: str = ""
    attachments: tuple[Attachment, ...] = ()
    choices: tuple[Choice, ...] = ()


NOTHING_BESIDE = Beside()


class Part(Struct, frozen=True):
    """A part to be delivered. `key` is its idempotency key: the same part is queued once."""

    address: Address
    text: str
    key: str
    kind: PartKind = "reply"
    beside: Beside = NOTHING_BESIDE


class Person(Struct, frozen=True):
    """Somebody who speaks in a turn: over which channel, and who. `profile` is which tools there are for them."""

    channel: str
    sender: str = ""
    is_owner: bool = True
    profile: Tier = ""


class Errand(Struct, frozen=True, omit_defaults=True):
    """What a helper was given, fixed for good. `origins` are the events, without their words, that the turn answered in
    which it was spawned: for them it works, and where the last of them came from its result is answered.

    `trust` is the lowest of what that turn had read. `links` counts the helpers before it that led to it without a
    person having said anything. `model` is a reference, empty = the one at hand.
    """

    task: str
    origins: tuple[Inbound, ...]
    focus: str = ""
    model: str = ""
    trust: Trust = "owner"
    links: int = 0


class Spawn(Struct, frozen=True):
    """A helper to be. `parent` is the key of the conversation, `session` the id of the session that spawns it."""

    id: str
    parent: str
    session: str
    agent: str
    errand: Errand


class OutboxRow(Struct, frozen=True):
    """A stored outbound part. Parts of one chat are delivered in the order of `place`, then of `id`.

    `text` is Markdown; `body` is what of it goes out in this part, once it was made for its platform. `platform_id` is
    the message's there. `due` is when it is tried next.
    """

    id: int
    session: str
    turn: str
    address: Address
    text: str
    state: OutboxState
    created: int
    kind: PartKind = "reply"
    place: int = 0
    attempts: int = 0
    due: int = 0
    platform_id: str = ""
    error: str = ""
    key: str = ""
    body: Body | None = None
    beside: Beside = NOTHING_BESIDE
