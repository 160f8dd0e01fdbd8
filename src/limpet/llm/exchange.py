"""One request to a service while it runs: what it will cost as far as known, and its raw bytes for a trace."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence

from limpet.types.trace import ANSWER_KEPT, MARGIN
from limpet.types.usage import NO_USAGE, Usage


class Tally:
    """What an answer that never ends has used. `owed`: the service has the request and has not refused it.

    `count` gives what it said of its usage, the output at least as much as came.
    """

    __slots__ = ("count", "owed")

    def __init__(self) -> None:
        self.owed = False
        self.count: Callable[[], Usage] = lambda: NO_USAGE


class Excerpt:
    """The beginning and the end of bytes that come in pieces, at least `most` of each."""

    __slots__ = ("_most", "_room", "_tail_size", "head", "size", "tail")

    def __init__(self, most: int) -> None:
        self._most = most
        self._room = most
        self._tail_size = 0
        self.head: list[bytes] = []
        self.tail: deque[bytes] = deque()
        self.size = 0

    def add(self, piece: bytes) -> None:
        length = len(piece)
        self.size += length
        if self._room > 0:
            self._room -= length
            self.head.append(piece)
            return
        self.tail.append(piece)
        self._tail_size += length
        while self._tail_size - len(self.tail[0]) >= self._most:
            self._tail_size -= len(self.tail.popleft())


class Exchange:
    """A request and what came back, filled by the wire and `Http`. Header names are as they were sent."""

    __slots__ = ("answer_headers", "body", "headers", "received", "status", "tally", "url")

    def __init__(self, body: Sequence[bytes], tally: Tally) -> None:
        self.body = body
        self.tally = tally
        self.url = ""
        self.headers: Mapping[str, str] = {}
        self.status = 0
        self.answer_headers: Mapping[str, str] = {}
        self.received = Excerpt(ANSWER_KEPT // 2 + MARGIN)
