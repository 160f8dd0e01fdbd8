"""The process in which the embedded model lives: `python -m limpet.llm.embedded_child MODEL THREADS IDLE_SECONDS`.

Speaks JSON lines: questions on standard input, pieces of answers on standard output. It ends when its standard
input does (so with its parent, however that dies), and after `IDLE_SECONDS` without a question.
Questions: `{"ask": 1, "messages": […], "max_tokens": 200}` and `{"stop": 1}`. Answers: `{"ready": true}`,
`{"error": "…"}`, `{"id": 1, "text": "…"}`, and at the end `{"id": 1, "done": "stop", "input": 9, "output": 3}`.
"""

from __future__ import annotations

import json
import os
import queue
import secrets
import sys
import threading
import traceback
from importlib import import_module
from typing import BinaryIO

import msgspec
from msgspec import Struct

WINDOW = 8_192


class Question(Struct):
    ask: int = 0
    stop: int = 0
    messages: list[dict[str, str]] = []
    max_tokens: int = 200
    temperature: float = 0.2


class _Delta(Struct):
    content: str | None = None


class _Choice(Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Usage(Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Chunk(Struct):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    error: object = None


class Answering:
    """Runs questions one by one. `stopped` is the number of the question that was taken back."""

    def __init__(self, model: str, threads: int, *, out: BinaryIO) -> None:
        runtime = import_module("xllamacpp")  # heavy, optional, and without types
        parameters = runtime.CommonParams()
        parameters.model.path = model
        parameters.n_ctx = WINDOW
        parameters.n_parallel = 1
        parameters.cpuparams.n_threads = threads
        parameters.cpuparams_batch.n_threads = threads
        parameters.warmup = False
        parameters.verbosity = -1
        parameters.api_keys = [secrets.token_hex(16)]  # it opens a port on loopback, which nobody is to use
        self._server = runtime.Server(parameters)
        self._out = out
        self.stopped = 0

    def say(self, **fields: object) -> None:
        self._out.write(json.dumps(fields).encode() + b"\n")
        self._out.flush()

    def answer(self, question: Question) -> None:
        """Stream one answer."""
        reason, usage = "stop", _Usage()

        def chunk(value: object) -> bool:
            """Takes one chunk of the stream; True ends it."""
            nonlocal reason, usage
            found = msgspec.convert(value, _Chunk)
            if found.error:
                raise RuntimeError(str(found.error))
            usage = found.usage or usage
            for choice in found.choices:
                reason = choice.finish_reason or reason
                if choice.delta is not None and choice.delta.content:
                    self.say(id=question.ask, text=choice.delta.content)
            return self.stopped == question.ask

        request = {
            "messages": question.messages,
            "max_tokens": question.max_tokens,
            "temperature": question.temperature,
            "repeat_penalty": 1.1,
            "cache_prompt": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        self._server.handle_chat_completions(request, chunk)
        self.say(id=question.ask, done=reason, input=usage.prompt_tokens, output=usage.completion_tokens)


def main() -> None:
    model, threads, idle = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not mix with the answers
    try:
        answering = Answering(model, threads, out=out)
    except Exception as error:  # process main: the parent gets the reason
        traceback.print_exc()
        out.write(json.dumps({"error": f"{type(error).__name__}: {error}"}).encode() + b"\n")
        out.flush()
        os._exit(3)
    answering.say(ready=True)
    waiting: queue.Queue[Question] = queue.Queue()
    threading.Thread(target=_listen, args=(waiting, answering), daemon=True).start()
    while True:
        try:
            question = waiting.get(timeout=idle)
        except queue.Empty:
            os._exit(0)
        try:
            answering.answer(question)
        except Exception as error:  # process main: the parent gets the reason
            traceback.print_exc()
            answering.say(id=question.ask, error=f"{type(error).__name__}: {error}")


def _listen(waiting: queue.Queue[Question], answering: Answering) -> None:
    decoder = msgspec.json.Decoder(Question)
    for line in sys.stdin.buffer:
        question = decoder.decode(line)
        if question.stop:
            answering.stopped = question.stop
        else:
            waiting.put(question)
    os._exit(0)  # the parent is gone


if __name__ == "__main__":
    main()
