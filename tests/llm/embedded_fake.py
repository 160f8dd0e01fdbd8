"""Stands in for `limpet.llm.embedded_child` in tests: the same lines over the same pipes, and no model."""

from __future__ import annotations

import json
import sys
import time


def say(**fields: object) -> None:
    print(json.dumps(fields), flush=True)


def main() -> None:
    mode = sys.argv[1]
    if mode == "broken":
        say(error="RuntimeError: no such model")
        return
    if mode == "dead":
        return
    say(ready=True)
    for line in sys.stdin:
        question = json.loads(line)
        if "stop" in question:
            say(id=question["stop"], done="stop")
            continue
        if mode == "dies":
            return
        if mode == "silent":
            time.sleep(60)
        last = question["messages"][-1]["content"]
        if last == "wait":
            say(id=question["ask"], text="some")
            continue
        roles = "".join(message["role"][0] for message in question["messages"])
        say(id=question["ask"], text=f"{roles} {question['max_tokens']} ")
        say(id=question["ask"], text=last[:40])
        say(id=question["ask"], done="length" if last == "long" else "stop", input=5, output=2)


main()
