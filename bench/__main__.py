"""`python -m bench COMMAND [--json FILE] [--quick]`: measure, print a table, and say which goals hold."""

from __future__ import annotations

import argparse
import importlib
import os
import sys

from bench.report import as_json, table

COMMANDS = {
    "start": "CPU, time and memory of commands, in multiples of `import asyncio`",
    "turn": "CPU, commits and bytes of a turn in a running process, for 1, 8 and 64 sessions",
    "history": "cost of a turn after 10, 100, 1,000 and 2,000 turns",
    "stream": "CPU of a streamed answer of 2,000 deltas, on every wire",
    "project": "the messages of a session of 20, 200 and 2,000 entries, from the database and one entry later",
    "cache": "what recorded conversations would cost at each provider's prompt cache, in our layout and others'",
    "undo": "CPU of keeping what a turn is about to change, in a workspace of 2,000 files",
    "agentdojo": "which attacks get through the taint rule, and in how many harmless tasks it asks",
    "attack": "the attack suite: what was tried, and what got through",
    "sandbox": "what the sandbox adds to a command",
    "mcp": "what a call of an MCP server costs over the SDK's own, and how long one takes to end",
    "memory": "how well public conversations are found again (LIMPET_BENCH_DATA names their folder)",
    "memory_cjk": "how often Chinese, Japanese and Korean questions find their note first; part of memory",
    "memory_speed": "search, build and memory of the index by size; part of memory (LIMPET_BENCH_LARGE: 100,000)",
    "gateway": "how soon the gateway is ready, what it costs idle, turns a second, how long people wait",
    "schedule": "what 10,000 jobs cost a gateway that is idle, and how long it takes to see what is next",
    "api": "what a request to the API costs over the same turn through the inbox",
    "web": "the page: how soon it is usable, how soon what is said is seen, what its code weighs",
    "channels": "what the library of each channel costs: CPU of its import, memory",
    "recall": "which share of a message a note must hold to be recalled for it, on a labelled set",
    "size": "bytes of the first request, megabytes of the installed core",
}


def main() -> int:
    """Gives 0 also when a goal is missed: a busy machine is no error."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "command", choices=COMMANDS, help="; ".join(f"{name}: {text}" for name, text in COMMANDS.items())
    )
    parser.add_argument("--json", metavar="FILE", default="", help="also write the figures to FILE (- for stdout only)")
    parser.add_argument("--quick", action="store_true", help="few repetitions: shows that it works, not how fast it is")
    given = parser.parse_args()
    # Without compiled caches every figure would be that of the compiler.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    report = importlib.import_module(f"bench.{given.command}").measure(quick=given.quick)
    text = as_json(report, command=given.command, quick=given.quick)
    if given.json == "-":
        print(text)
        return 0
    print(table(report))
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            file.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
