"""Session keys: which conversation an event belongs to. The main session is the owner's own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from limpet.errors import InputError
from limpet.types.envelope import Address

Scope = Literal["main", "peer", "channel-peer", "account-channel-peer"]
"""How direct chats share sessions: all one, by person, by person and channel (default), also by account."""

NO_LINKS: Mapping[str, Sequence[str]] = MappingProxyType({})
API = "api"
"""The channel of programs that use the API."""
UNASKED = ("cron", "heartbeat", "hook")
"""Channels of what comes by itself, and kinds of sessions for that alone."""
EACH_RUN = "run"
"""Why a session of a job ends: each run has its own."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


def check_agent(agent: str) -> str:
    """The agent id, if it is one: lower-case letters, digits, `_`, `-`, up to 64. Raises `InputError`."""
    if not _NAME.fullmatch(agent):
        raise InputError(
            f"{agent!r} is not an agent id.",
            hint="Use up to 64 of a-z, 0-9, _ and -, beginning with a letter or digit.",
        )
    return agent


def main(agent: str) -> str:
    return f"agent:{agent}:main"


def cli(agent: str, name: str) -> str:
    """The session of `limpet agent --session NAME`; `main` is the main session. Raises `InputError`."""
    if name == "main":
        return main(agent)
    if not name or len(name) > 128 or any(ord(character) < 33 or character == ":" for character in name):
        raise InputError(
            f"{name!r} is not a name for a session.", hint="Use up to 128 visible characters without ':' and spaces."
        )
    return f"agent:{agent}:cli:{name}"


def web(agent: str, chat: str) -> str:
    """A chat of the page; `main` is the main session."""
    return main(agent) if chat == "main" else f"agent:{agent}:web:{chat}"


def api(agent: str, token: str, session: str) -> str:
    """A conversation of the program that shows `token`."""
    return f"agent:{agent}:{API}:{token}:{session}"


def name_of(key: str) -> str:
    """The name under which a terminal opens the session `key`: that of `cli`, else the key itself."""
    parts = key.split(":")
    return parts[-1] if len(parts) > 2 and parts[2] in ("cli", "main") else key


def direct(agent: str, address: Address, peer: str, *, scope: Scope = "channel-peer") -> str:
    """A chat of one person with the agent."""
    match scope:
        case "main":
            return main(agent)
        case "peer":
            return f"agent:{agent}:direct:{peer}"
        case "channel-peer":
            return f"agent:{agent}:{address.channel}:direct:{peer}"
        case "account-channel-peer":
            return f"agent:{agent}:{address.channel}:{address.account}:direct:{peer}"


def person(address: Address, sender: str, links: Mapping[str, Sequence[str]]) -> str:
    """Who `sender` is: the name under which `links` lists the account (`channel:id`, or the id alone), else the id.

    Ids are compared as they are: on some platforms two that differ only in case are two people.
    """
    accounts = (f"{address.channel}:{sender}", sender)
    return next((name for name, known in links.items() if any(one in accounts for one in known)), sender)


def for_event(
    agent: str,
    address: Address,
    sender: str,
    *,
    in_group: bool,
    scope: Scope = "channel-peer",
    links: Mapping[str, Sequence[str]] = NO_LINKS,
) -> str:
    """The session of what `sender` says at `address`, in a group or alone with the agent."""
    if address.channel == "web":
        return web(agent, address.chat)
    return group(agent, address) if in_group else direct(agent, address, person(address, sender, links), scope=scope)


def group(agent: str, address: Address) -> str:
    """A group chat, or a thread of one."""
    key = f"agent:{agent}:{address.channel}:group:{address.chat}"
    return f"{key}:thread:{address.thread}" if address.thread else key


def agent_of(key: str) -> str:
    """The agent that a key names; `main` for those that name none."""
    parts = key.split(":")
    return parts[1] if len(parts) > 2 and parts[0] == "agent" else "main"


def cron(job: str) -> str:
    return f"cron:{job}"


def hook(name: str, kept: str = "") -> str:
    """What comes over the hook `name`, each in a session of its own; or in the one that is called `kept`."""
    return f"hook:{name}:{kept}" if kept else f"hook:{name}"


def stands_alone(key: str) -> bool:
    """Whether each run under a key has a session of its own."""
    return kind_of(key) == "cron" or (kind_of(key) == "hook" and key.count(":") == 1)


def subagent(parent: str, child: str) -> str:
    return f"{parent}:subagent:{child}"


def is_unasked(key: str, channel: str) -> bool:
    """Whether nobody asks in an event from `channel` for the session `key`: a job, a hook or a heartbeat does."""
    return kind_of(key) in UNASKED or channel in UNASKED


Kind = Literal["main", "cli", "web", "api", "direct", "group", "thread", "cron", "hook", "subagent"]
"""What sort of conversation a key is for."""


def kind_of(key: str) -> Kind:
    """The sort of conversation that `key` is for. Ids of people and chats may hold colons themselves."""
    if ":subagent:" in key:
        return "subagent"
    match key.split(":"):
        case ["cron" | "hook" as kind, *_]:
            return kind
        case ["agent", _, "main" | "cli" | "web" | "api" | "direct" as kind, *_]:
            return kind
        case ["agent", _, _, "group", *rest]:
            return "thread" if "thread" in rest else "group"
        case _:
            return "direct"
