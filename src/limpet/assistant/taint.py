"""The taint rule: with strangers' words in the conversation, what they could gain by needs the owner's yes (DESIGN 9).

What a hijacked model would do are sinks here: carry something out, act in the owner's name, speak in another
conversation, and write itself into the files that steer later ones. `provenance` tells which calls the owner's own
words account for; those ask nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from limpet.assistant.provenance import Found, Heard, carried, host_of, objection, unnamed
from limpet.mcp.names import PREFIX
from limpet.session.export import plain
from limpet.session.log import Log
from limpet.toolkit.schema import Bound
from limpet.tools.protected import is_protected, leads_to
from limpet.types.entry import AssistantEntry, ToolResultEntry, UserEntry
from limpet.types.ports import EVERYWHERE, BoundCall, Policy, Scope, Tool, Verdict

WHY = "strangers' words are in this conversation, and"
WAY_BACK = "/trust says whose they are, /trust once lets a turn pass."
_COMMANDS = ("exec", "process")
_LINK = re.compile(r"\]\((https?://[^\s)]+)\)")
_LISTED = re.compile(r"^ *- /url: (https?://\S+)$", re.MULTILINE)
_HIT = re.compile(r"^(https?://\S+)$", re.MULTILINE)


class TaintPolicy:
    """Implements the port `Policy` for one `turn`: some of what `policy` allows is asked for when `log` is tainted."""

    def __init__(self, policy: Policy, log: Log, *, turn: str, workspace: str) -> None:
        self._policy = policy
        self._log = log
        self._turn = turn
        self._workspace = os.path.realpath(workspace)
        self._found: dict[str, Found] = {}

    def decide(self, tool: Tool, call: BoundCall, scope: Scope = EVERYWHERE) -> Verdict:
        verdict = self._policy.decide(tool, call, scope)
        vouched = self._turn and self._log.vouched == self._turn
        if verdict.decision != "allow" or not self._log.tainted or vouched or "taint" in verdict.even:
            return verdict
        found = self._objection(tool, call)
        return Verdict("ask", f"{WHY} {found}. {WAY_BACK}", rule="taint", place=verdict.place) if found else verdict

    def _objection(self, tool: Tool, call: BoundCall) -> str:
        for path in call.writes:
            if protected := self._protected(path):
                return f"{protected} steers later conversations"
        name = tool.spec.name
        sends = isinstance(call, Bound) and call.sends
        if name in _COMMANDS:
            acts = call.values.get("action", "write") == "write"
            return "the command reaches the network" if sends and acts else ""
        if name == "web_search":
            return carried(str(call.values.get("query", "")), self._heard())
        if name.startswith(PREFIX):
            acts, judged = name.removeprefix(PREFIX).partition("_")[2], call.values
        elif isinstance(call, Bound) and call.acts:
            acts, judged = str(call.values.get("action", name)), _words_of(name, call.values)
        elif isinstance(call, Bound) and "url" in call.values:
            return unnamed(str(call.values["url"]), self._heard())
        else:
            return ""
        changes = call.acts if isinstance(call, Bound) else tool.effect == "unsafe"
        return objection(acts, judged, self._heard(), changes=changes)

    def _protected(self, path: str) -> str:
        """The name of a file that steers the agent; empty for any other."""
        relative = os.path.relpath(path, self._workspace)
        return relative if is_protected(relative) else leads_to(self._workspace, path)

    def _heard(self) -> Heard:
        """What was said and found so far. Errors and results of commands are left out: the agent itself can put any
        address into those, and what it does with their words it does with the owner's."""
        summary, seen = self._log.visible()
        shown = {entry.id for entry in seen}
        owner: list[str] = []
        found: list[Found] = [Found(summary)]
        links: set[str] = set()
        asked: dict[tuple[str, int], str] = {}
        for entry in self._log.path():
            match entry.payload:
                case UserEntry(message=message) if entry.trust == "owner":
                    owner.append("".join(map(plain, message.content)))
                case AssistantEntry(message=message):
                    asked |= {(entry.id, index): call.arguments for index, call in enumerate(message.calls)}
                case ToolResultEntry(result=result) as payload if entry.trust == "external" and not result.is_error:
                    if entry.id not in shown:
                        continue
                    found.append(self._found.setdefault(entry.id, Found(result.text)))
                    links |= set(_links(payload, asked.get((payload.assistant, payload.index), ""), owner))
                case UserEntry(message=message) if entry.id in shown:
                    found.append(self._found.setdefault(entry.id, Found("".join(map(plain, message.content)))))
                case _:
                    pass
        return Heard(owner, found, links=frozenset(links))


def _words_of(name: str, values: Mapping[str, object]) -> Mapping[str, object]:
    """The arguments that say something; not a ref, which stands in every page, nor the name of a key."""
    if name != "browser":
        return values
    said = ("url",) if values.get("action") == "press" else ("url", "text")
    return {key: value for key, value in values.items() if key in said}


def _links(payload: ToolResultEntry, arguments: str, owner: list[str]) -> Iterator[str]:
    """Addresses that lead on from what the owner asked for: hits of a search, links of a page that the owner named, and
    of the other pages of a host that the owner named those which stay there."""
    if payload.name == "web_search":
        yield from _HIT.findall(payload.result.text)
    elif payload.name in ("web_fetch", "browser"):
        named = re.search(r'"url":\s*"([^"]+)"', arguments)
        shape = _LISTED if payload.name == "browser" else _LINK
        found: list[str] = shape.findall(payload.result.text) if named else []
        if named and any(named[1] in text for text in owner):
            yield from found
        elif named and (host := host_of(named[1])) and Heard(owner, []).owner_named(host):
            yield from (link for link in found if host_of(link) == host)
