"""Policy: what may run at once, what the owner is asked for first. Prose asks the model; this decides."""

from __future__ import annotations

from collections.abc import Mapping

from limpet.sandbox.run import Sandbox
from limpet.tools.danger import danger, secret_file
from limpet.types.ports import EVERYWHERE, BoundCall, Scope, Tool, Verdict

_PATH_ARGUMENTS = ("path",)
OWNER = "owner"
"""The chat to which anybody may have something sent."""


class BuiltinPolicy:
    """Implements the port `Policy` for the built-in tools. Tools it does not know are asked for when unsafe."""

    def __init__(self, sandbox: Sandbox, *, trusted: frozenset[str] = frozenset()) -> None:
        self._sandbox = sandbox
        self._trusted = trusted

    def decide(self, tool: Tool, call: BoundCall, scope: Scope = EVERYWHERE) -> Verdict:
        values = call.values
        if tool.spec.name == "exec":
            return self._decide_exec(str(values.get("command", "")), str(values.get("place", "sandbox")))
        for path in (*(str(values.get(name, "")) for name in _PATH_ARGUMENTS), *call.writes):
            if found := secret_file(path):
                return Verdict("ask", f"{found} holds credentials", rule="credentials")
        if tool.spec.name == "message" and _gives_away(values, scope):
            return Verdict("ask", "others than you speak here, and it sends files or to another chat", rule="peers")
        if tool.effect == "unsafe" and tool.spec.name not in self._trusted:
            return Verdict("ask", f"{tool.spec.name} may change things outside the workspace", rule="unsafe")
        return Verdict("allow", rule="default")

    def _decide_exec(self, command: str, place: str) -> Verdict:
        report = self._sandbox.report
        really = "host" if report.kind == "none" else place
        found = danger(command)
        if found:
            return Verdict("ask", found, rule="danger", place=really)
        if report.kind == "none":
            reason = f"commands cannot be isolated here: {report.reason}. {report.remedy}"
            return Verdict("ask", reason, rule="no sandbox", place=really)
        if place == "host":
            reason = "the command would run outside the sandbox, with the network and the whole machine"
            return Verdict("ask", reason, rule="host", place=really)
        return Verdict("allow", rule="default", place=really)


def _gives_away(values: Mapping[str, object], scope: Scope) -> bool:
    """Whether a message is more than others than the owner may have sent: words here, or to the owner."""
    elsewhere = values.get("to") not in (None, "", OWNER)
    return (elsewhere or bool(values.get("files"))) and not all(person.is_owner for person in scope.people)
