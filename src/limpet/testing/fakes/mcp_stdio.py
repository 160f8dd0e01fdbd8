"""A small MCP server on standard input and output, run as a program by its path: quick, as it needs no package.

Its one argument is the path of a JSON file: `tools`, `prompts` and `resources` are what it lists (read again each
time), `exit`, `say` and `hang` are what it does before anything else, `deaf` that it does not end when it is told to.
What a tool does is in `_call`, by its name.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A PNG of one pixel, base64."""


def send(message: dict[str, object]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(value: str, **more: object) -> dict[str, object]:
    return {"content": [{"type": "text", "text": value}], **more}


ANSWERS: dict[str, dict[str, object]] = {
    "fail": text("that did not work", isError=True),
    "picture": {"content": [{"type": "image", "data": PIXEL, "mimeType": "image/png"}]},
    "structured": {"content": [], "structuredContent": {"n": 1}},
    "link": {"content": [{"type": "resource_link", "uri": "file:///a", "name": "a", "description": "a letter"}]},
}
"""Tools that always answer the same."""
PROGRESS = {"progress": 1, "total": 2, "message": "half"}


def _call(name: str, params: dict[str, Any], *, plan: Path) -> dict[str, object] | None:
    """The result of a tool; None for one that never answers."""
    arguments: dict[str, Any] = params.get("arguments", {})
    match name:
        case "die":
            os._exit(3)
        case "hang":
            return None
        case "pid":
            return text(str(os.getpid()))
        case "env":
            return text("\n".join(sorted(os.environ)))
        case "big":
            return text("x" * int(arguments["size"]))
        case "progress":
            token = params["_meta"]["progressToken"]
            send({"method": "notifications/progress", "params": {"progressToken": token, **PROGRESS}})
            return text("done")
        case "touch":
            try:
                Path(arguments["path"]).touch()
            except OSError as error:
                return text(f"refused: {error.strerror}", isError=True)
            return text("touched")
        case "change":
            _change(plan)
            return text("changed")
        case _:
            return ANSWERS.get(name) or text(json.dumps(arguments))


def _change(plan: Path) -> None:
    """List one tool more from now on, and say so."""
    found = json.loads(plan.read_text())
    found["tools"] = [*found["tools"], {"name": "later", "inputSchema": {"type": "object"}}]
    plan.write_text(json.dumps(found))
    send({"method": "notifications/tools/list_changed"})


def _plan(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def _answer(request: dict[str, Any], plan: Path) -> dict[str, object] | None:
    params: dict[str, Any] = request.get("params", {})
    match request["method"]:
        case "initialize":
            offered = [name for name in ("tools", "prompts", "resources") if name in _plan(plan)]
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {name: {"listChanged": True} for name in offered},
                "serverInfo": {"name": "fake", "version": "1"},
            }
        case "tools/list":
            return {"tools": _plan(plan)["tools"]}
        case "prompts/list":
            return {"prompts": _plan(plan)["prompts"]}
        case "prompts/get":
            told = json.dumps(params.get("arguments", {}))
            return {"messages": [{"role": "user", "content": {"type": "text", "text": f"{params['name']} {told}"}}]}
        case "resources/list":
            return {"resources": _plan(plan)["resources"]}
        case "resources/read":
            picture = {"blob": PIXEL, "mimeType": "image/png"}
            held = picture if params["uri"].endswith(".png") else {"text": "the words of a stranger"}
            return {"contents": [{"uri": params["uri"], **held}]}
        case "tools/call":
            return _call(params["name"], params, plan=plan)
        case _:
            send({"id": request["id"], "error": {"code": -32601, "message": "no such method"}})
            return None


def main() -> None:
    plan = Path(sys.argv[1])
    found = json.loads(plan.read_text())
    with plan.with_suffix(".starts").open("a") as starts:
        starts.write(f"{os.getpid()}\n")
    if "say" in found:
        sys.stdout.write(found["say"])
        sys.stderr.write(found["say"])
    if "exit" in found:
        sys.exit(found["exit"])
    if "deaf" in found:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "hang" in found:
        time.sleep(60)
    for line in sys.stdin:
        request = json.loads(line)
        if request.get("method") == "notifications/cancelled":
            plan.with_suffix(".cancelled").touch()
        elif "id" in request and (result := _answer(request, plan)) is not None:
            send({"id": request["id"], "result": result})
    if "deaf" in found:
        time.sleep(60)


if __name__ == "__main__":
    main()
