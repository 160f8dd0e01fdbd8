"""The taint rule: with strangers' words in the conversation, what they could gain by needs the owner's yes (DESIGN 9).

What a hijacked model would do are sinks here: carry something out in an address it made up, speak in another
conversation, and write itself into the files that steer later ones. An address that stands word for word in what the
owner said, or in what was found, carries nothing out; so reading the results of a search asks nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from urllib.parse import urlsplit

from limpet.mcp.names import PREFIX
from limpet.session.export import plain
from limpet.session.log import Log
from limpet.toolkit.schema import Bound
from limpet.tools.protected import is_protected
from limpet.types.entry import ToolResultEntry, UserEntry
from limpet.types.ports import EVERYWHERE, BoundCall, Decision, Policy, Scope, Tool, Verdict

WHY = "strangers' words are in this conversation, and"


class TaintPolicy:
    """Implements the port `Policy` for one turn: some of what `policy` allows is asked for when `log` is tainted."""

    def __init__(self, policy: Policy, log: Log, *, workspace: str) -> None:
        self._policy = policy
        self._log = log
        self._workspace = os.path.realpath(workspace)

    def decide(self, tool: Tool, call: BoundCall, scope: Scope = EVERYWHERE) -> Verdict:
        verdict = self._policy.decide(tool, call, scope)
        if "taint" in verdict.even:
            return verdict
        decision, reason = self._decide(tool, call, (verdict.decision, verdict.reason))
        changed = decision != verdict.decision
        return Verdict(decision, reason, rule="taint", place=verdict.place) if changed else verdict

    def _decide(self, tool: Tool, call: BoundCall, before: tuple[Decision, str]) -> tuple[Decision, str]:
        decision, reason = before
        if decision != "allow" or not self._log.tainted:
            return decision, reason
        if tool.spec.name.startswith(PREFIX) and tool.effect == "unsafe":
            return "ask", f"{WHY} {tool.spec.name} may carry something out"
        for path in call.writes:
            if protected := self._protected(path):
                return "ask", f"{WHY} {protected} steers later conversations"
        if isinstance(call, Bound) and call.sends:
            return "ask", f"{WHY} {call.name} carries words out of it"
        url = str(call.values.get("url", "")) if isinstance(call, Bound) else ""
        if url and not self._known(url):
            return "ask", f"{WHY} neither you nor anything found has named the address {url[:200]}"
        return decision, reason

    def _protected(self, path: str) -> str:
        """The name of a file that steers the agent; empty for any other."""
        relative = os.path.relpath(path, self._workspace)
        return relative if is_protected(relative) else ""

    def _known(self, url: str) -> bool:
        """Whether the address itself was said or found, or its host is one that the owner named."""
        host = (urlsplit(url).hostname or "").lower()
        return any(url in text or (owners and host in text.lower()) for text, owners in self._texts()) and bool(host)

    def _texts(self) -> Iterator[tuple[str, bool]]:
        """What was said and what was found outside, the newest first, and whether the owner said it.

        Errors and results of commands are left out: the agent itself can put any address into those.
        """
        for entry in reversed(self._log.path()):
            match entry.payload:
                case UserEntry(message=message):
                    yield "".join(map(plain, message.content)), entry.trust == "owner"
                case ToolResultEntry(result=result) if result.trust == "external" and not result.is_error:
                    yield result.text, False
                case _:
                    pass
