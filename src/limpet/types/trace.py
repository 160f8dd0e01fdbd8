"""Traces: a failed request to a model as it went over the wire, for people who must find out why."""

from __future__ import annotations

from msgspec import Struct

REQUEST_KEPT = 256 << 10
ANSWER_KEPT = 64 << 10
"""Characters of a body that are kept at the most, half from its beginning and half from its end."""
MARGIN = 4 << 10
"""So many more are handed over, so that no secret is cut in half before it is looked for."""


class Extract(Struct, frozen=True, omit_defaults=True):
    """A long text: its beginning, how many bytes are left out, its end."""

    head: str = ""
    omitted: int = 0
    tail: str = ""

    @property
    def text(self) -> str:
        return f"{self.head}\n… {self.omitted:,} bytes left out …\n{self.tail}" if self.omitted else self.head


class Trace(Struct, frozen=True, omit_defaults=True):
    """`reason` names the error class and says what it said; `status` is 0 where no answer came."""

    session: str
    provider: str
    model: str
    reason: str
    url: str = ""
    headers: dict[str, str] = {}
    request: Extract = Extract()
    status: int = 0
    answer_headers: dict[str, str] = {}
    answer: Extract = Extract()
