"""What a program asks for and is answered, whatever API it speaks; each dialect maps its own shapes to these."""

from __future__ import annotations

from typing import Literal, Protocol

from msgspec import Struct

from limpet.types.content import ToolCall
from limpet.types.message import Sampling, StopReason, ToolChoice
from limpet.types.tool import ToolSpec
from limpet.types.usage import NO_USAGE, Usage


class Line(Struct, frozen=True, omit_defaults=True):
    """One message. `pictures` are addresses (`data:`, `http:`, `https:`); a tool's result answers the call `call`."""

    role: Literal["user", "assistant", "tool"]
    text: str = ""
    pictures: tuple[str, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    call: str = ""
    is_error: bool = False


class Ask(Struct, frozen=True):
    """One request. `session` is what the program calls the conversation; `previous` the id of the answer that this
    goes on from; `keep`: so may another, from this one's. With `tools` the model is asked itself, else an agent."""

    model: str
    lines: tuple[Line, ...]
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    choice: ToolChoice = "auto"
    sampling: Sampling = Sampling()
    stop: tuple[str, ...] = ()
    stream: bool = False
    usage: bool = True
    session: str = ""
    previous: str = ""
    keep: bool = False

    @property
    def passes_through(self) -> bool:
        """Whether the program has tools of its own, or tells of calls of them."""
        return bool(self.tools) or any(line.calls or line.role == "tool" for line in self.lines)


class Head(Struct, frozen=True):
    """What is known of an answer before it begins. `number` names it; `at` is when it was asked for (UTC s)."""

    number: str
    model: str
    at: int
    usage: bool = True


class Ended(Struct, frozen=True):
    """A whole answer: all its text, also what was streamed before."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    stop: StopReason = "stop"
    usage: Usage = NO_USAGE
    sequence: str = ""


class Fault(Exception):
    """A request that is not answered: `status` of HTTP, a sentence, the field that is to blame, a code for programs."""

    def __init__(self, status: int, message: str, *, code: str = "", field: str = "", again: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.field = field
        self.again = again


class Speaker(Protocol):
    """Writes one answer as a stream of events."""

    def begin(self) -> bytes: ...

    def piece(self, text: str) -> bytes: ...

    def end(self, ended: Ended) -> bytes: ...

    def fail(self, fault: Fault) -> bytes: ...

    def rest(self) -> bytes:
        """Says that the connection is alive."""
        ...


class Dialect(Protocol):
    """Provided by `chat`, `responses` and `messages`: one API's shapes."""

    prefix: str
    """With which the names of answers begin."""
    fields: tuple[str, ...]
    """Those of a request that mean something here."""

    def read(self, body: bytes) -> Ask:
        """Raises `Fault`, `msgspec.MsgspecError`."""
        ...

    def whole(self, head: Head, ended: Ended) -> bytes: ...

    def speaker(self, head: Head) -> Speaker: ...

    def fault(self, fault: Fault) -> bytes: ...
