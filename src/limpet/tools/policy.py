"""Policy: what may run at once, what the owner is asked for first. Prose asks the model; this decides."""

from __future__ import annotations

from collections.abc import Mapping

from limpet.sandbox.run import Sandbox
from limpet.toolkit.schema import Bound
from limpet.tools.danger import danger, secret_file
from limpet.types.ports import BoundCall, Decision, Tool

_PATH_ARGUMENTS = ("path",)


class BuiltinPolicy:
    """Implements the port `Policy` for the built-in tools. Tools it does not know are asked for when unsafe."""

    def __init__(self, sandbox: Sandbox, *, trusted: frozenset[str] = frozenset()) -> None:
        self._sandbox = sandbox
        self._trusted = trusted

    def decide(self, tool: Tool, call: BoundCall) -> tuple[Decision, str]:
        values: Mapping[str, object] = call.values if isinstance(call, Bound) else {}
        if tool.spec.name == "exec":
            return self._decide_exec(str(values.get("command", "")), str(values.get("place", "sandbox")))
        for name in _PATH_ARGUMENTS:
            found = secret_file(str(values.get(name, "")))
            if found:
                return "ask", f"{found} holds credentials"
        if tool.effect == "unsafe" and tool.spec.name not in self._trusted:
            return "ask", f"{tool.spec.name} may change things outside the workspace"
        return "allow", ""

    def _decide_exec(self, command: str, place: str) -> tuple[Decision, str]:
        found = danger(command)
        if found:
            return "ask", found
        report = self._sandbox.report
        if report.kind == "none":
            return "ask", f"commands cannot be isolated here: {report.reason}. {report.remedy}"
        if place == "host":
            return "ask", "the command would run outside the sandbox, with the network and the whole machine"
        return "allow", ""
