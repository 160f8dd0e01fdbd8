"""A soak: many messages through one gateway. `python -m bench.soak MESSAGES` prints what it holds more of then."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import NotRequired, TypedDict

from bench.fake import ROOT, environment, fake, folder

SESSIONS = 64


class Soaked(TypedDict):
    """`grown`: bytes, open files and tasks that were added once all conversations had begun anew."""

    turns: int
    grown: dict[str, int]
    rss: NotRequired[int]


def soak(messages: int) -> Soaked:
    """A gateway and a model in processes of their own."""
    with fake() as server, folder() as home:
        home.mkdir(exist_ok=True)
        env = environment(home, server, LIMPET_GATEWAY__PORT="0", LIMPET_GATEWAY__TURNS=str(SESSIONS))
        command = [sys.executable, "-m", "bench.gateway_child", "soak", str(SESSIONS), str(messages)]
        done = subprocess.run(command, env=env, cwd=ROOT, check=True, capture_output=True, text=True)
    found: Soaked = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    print(json.dumps(soak(int(sys.argv[1]))))
