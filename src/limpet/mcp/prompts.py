"""Prompts of servers: what the owner can send with `/mcp SERVER.PROMPT`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from limpet.errors import InputError
from limpet.mcp.kept import Argument, ListedPrompt
from limpet.mcp.sdk import Part, Script
from limpet.mcp.server import Server
from limpet.types.envelope import Trust

_NAMED = re.compile(r"(?:^|\s)[\w.-]+=")


class ServerPrompts:
    """Implements the port `Prompts` over `servers`."""

    def __init__(self, servers: Sequence[Server]) -> None:
        self._servers = servers

    def listed(self) -> list[tuple[str, str]]:
        """How each is called, and what it is for."""
        return [
            (" ".join([f"{server.spec.name}.{prompt.name}", *map(_shown, prompt.arguments)]), prompt.description)
            for server in self._servers
            for prompt in server.prompts
        ]

    async def text(self, name: str, arguments: str) -> tuple[str, Trust]:
        """What `name` (SERVER.PROMPT) says, and how far that is trusted. Raises `InputError`, `ToolError`."""
        for server in self._servers:
            for prompt in server.prompts:
                if name == f"{server.spec.name}.{prompt.name}":
                    return said(await _fetch(server, prompt.name, given(prompt, arguments))), server.spec.trust
        raise InputError(f"No MCP server has a prompt {name}.", hint="/mcp lists them.")


async def _fetch(server: Server, name: str, values: Mapping[str, str]) -> Script:
    return await server.within(f"the prompt {name}", lambda connection: connection.get_prompt(name, values))


def _shown(argument: Argument) -> str:
    return f"{argument.name}=…" if argument.required else f"[{argument.name}=…]"


def given(prompt: ListedPrompt, text: str) -> Mapping[str, str]:
    """The arguments in `text`: as NAME=VALUE, or in their order; of a prompt that takes one, all of it.

    Raises `InputError`.
    """
    names = [one.name for one in prompt.arguments]
    if len(names) == 1 and text and not text.startswith(f"{names[0]}="):
        return {names[0]: text}
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"The arguments cannot be read: {error}.", hint='Put "…" around values with spaces.') from None
    values: dict[str, str] = {}
    if _NAMED.search(text):
        for word in words:
            name, mark, value = word.partition("=")
            if not mark or name not in names:
                raise InputError(f"{word} is no argument of {prompt.name}; it takes: {', '.join(names) or 'none'}.")
            values[name] = value
    elif len(words) > len(names):
        raise InputError(f"{prompt.name} takes {len(names)} arguments: {', '.join(names) or 'none'}.")
    else:
        values = dict(zip(names, words, strict=False))
    if missing := [one.name for one in prompt.arguments if one.required and not values.get(one.name)]:
        raise InputError(f"{prompt.name} also needs {', '.join(missing)}.", hint="Give them as NAME=VALUE.")
    return values


def said(script: Script) -> str:
    """The text of a prompt; where it is a whole conversation, with who speaks."""
    texts = [(one.role, _text(one.content)) for one in script.messages]
    if all(role == "user" for role, _ in texts):
        return "\n\n".join(text for _, text in texts)
    return "\n\n".join(f"{role}: {text}" for role, text in texts)


def _text(part: Part) -> str:
    if part.type == "text":
        return part.text
    if part.resource is not None and part.resource.text is not None:
        return f"[resource {part.resource.uri}]\n{part.resource.text}"
    return f"[{part.type} {part.uri or part.mime_type}: left out]"
