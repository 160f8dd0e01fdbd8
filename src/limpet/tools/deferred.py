"""Tools that the prompt does not name: `tool_search` finds them, `call_tool` calls them (F13).

The tools a model is told of never change within a prompt. What would fill it, and what appears later, is found and
called by these two instead. A call through `call_tool` *is* a call of the tool it names: `unwrapped` makes it one
before anything judges, logs or runs it.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated

from msgspec import Raw, structs

from limpet.errors import ArgumentsError
from limpet.toolkit.kinds import shorten
from limpet.toolkit.schema import FunctionTool, tool
from limpet.toolkit.words import indexed
from limpet.types.content import ToolCall
from limpet.types.ports import BoundCall, Tool, ToolContext
from limpet.types.tool import Effect, ToolResult, ToolSpec, text_result

SEARCH = "tool_search"
CALL = "call_tool"
MOST_FOUND = 8
"""Tools that one search shows with their parameters."""
_MOST_NAMED = 40
_SHARE = 0.5
"""The part of a result's cap that the tools found may take."""
_WEIGHTS = (3.0, 1.5, 1.0)
"""Of a word in a tool's name, among its parameters' names, in its description."""
_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def unwrapped(call: ToolCall) -> ToolCall:
    """The call that is meant: of `call_tool` the one inside, of any other tool itself.

    One that cannot be told is left as it is, with its `fault`.
    """
    if call.name != CALL or call.fault:
        return call
    try:
        name, arguments = _inner(json.loads(call.arguments or "{}", strict=False))
    except ArgumentsError as error:
        return structs.replace(call, fault=error.present())
    except ValueError as error:
        return structs.replace(call, fault=f"{CALL} was not run: its arguments are not complete JSON ({error}).")
    return structs.replace(call, name=name, arguments=arguments)


def _inner(given: object) -> tuple[str, str]:
    """The name, and the arguments as JSON text. They may come as an object or as the text of one."""
    fields: dict[str, object] = given if isinstance(given, dict) else {}  # pyright: ignore[reportUnknownVariableType]
    name, arguments = fields.get("name"), fields.get("arguments")
    if not isinstance(name, str) or not name or name == CALL:
        raise _wrong(f"`name` has to be the name of a tool, got {shorten(name)}")
    if arguments is None:
        return name, "{}"
    if isinstance(arguments, str):
        return name, arguments
    if not isinstance(arguments, dict):
        raise _wrong(f"`arguments` has to be an object, got {shorten(arguments)}")
    return name, json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))


def _wrong(what: str) -> ArgumentsError:
    return ArgumentsError(
        f"{CALL} was not run: {what}.", hint='Send {"name": …, "arguments": {…}} as tool_search has shown it.'
    )


class CallTool:
    """Implements the port `Tool`, for what a model is told of it: its calls are always `unwrapped`."""

    exclusive = False
    effect: Effect = "unsafe"

    def __init__(self, *, rare: Sequence[str] = ()) -> None:
        """`rare` are the names of some that are always there to be found."""
        such = f", such as {', '.join(rare)}" if rare else ""
        text = f"Call a tool found by tool_search{such}."
        parameters: dict[str, object] = {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "arguments": {"type": "object", "additionalProperties": True},
            },
            "required": ["name", "arguments"],
        }
        self.spec = ToolSpec(CALL, text, Raw(json.dumps(parameters, separators=(",", ":")).encode()))

    def bind(self, arguments: str, *, workspace: str) -> BoundCall:
        """Raises `ArgumentsError`."""
        raise ArgumentsError(unwrapped(ToolCall("", CALL, arguments)).fault or f"{CALL} does nothing by itself.")


def deferrable(tool: Tool) -> bool:
    """Whether a prompt may leave it out: what is not built in, and what is `rare`."""
    return tool.rare if isinstance(tool, FunctionTool) else not isinstance(tool, CallTool)


def is_sought(tool: Tool) -> bool:
    """Whether no prompt names it."""
    return isinstance(tool, FunctionTool) and tool.sought


def make_tool_search(there: Callable[[], Sequence[Tool]]) -> FunctionTool:
    """`tool_search` over the tools that are `there` and that a prompt may leave out."""

    @tool(effect="pure", brief="Find more tools.")
    async def tool_search(
        context: ToolContext,
        query: Annotated[str, "what it should do; empty: all by name"],
    ) -> ToolResult:
        """Find tools not listed here; call them with call_tool."""
        specs = [one.spec for one in there() if deferrable(one)]
        room = int(context.result_limit * _SHARE)
        return text_result(shown(ranked(query, specs), specs, room=room) if query.strip() else names(specs))

    return tool_search


def ranked(query: str, specs: Sequence[ToolSpec]) -> list[ToolSpec]:
    """Those that have words of `query`, the best first: rare words count more, and so do those of a name."""
    wanted = dict.fromkeys(_words(query))
    fields = [_fields(spec) for spec in specs]
    often = Counter(word for parts in fields for word in frozenset[str]().union(*parts))
    scores: list[tuple[float, int]] = []
    for place, parts in enumerate(fields):
        score = sum(_weight(word, parts) * math.log(1 + len(specs) / (1 + often[word])) for word in wanted)
        exact = 100.0 if query.strip() == specs[place].name else 0.0
        if score + exact:
            scores.append((-score - exact, place))
    return [specs[place] for _, place in sorted(scores)]


def _fields(spec: ToolSpec) -> tuple[frozenset[str], ...]:
    schema: object = json.loads(bytes(spec.parameters))
    properties: object = schema.get("properties") if isinstance(schema, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    named = " ".join(map(str, properties)) if isinstance(properties, dict) else ""  # pyright: ignore[reportUnknownArgumentType]
    return tuple(frozenset(_words(text)) for text in (spec.name, named, spec.description))


def _weight(word: str, parts: Sequence[frozenset[str]]) -> float:
    """The weight of the best field that has `word`; half of it where a longer word only begins so."""
    found = 0.0
    for weight, field in zip(_WEIGHTS, parts, strict=True):
        if word in field:
            found = max(found, weight)
        elif len(word) > 2 and any(other.startswith(word) for other in field):
            found = max(found, weight / 2)
    return found


def _words(text: str) -> list[str]:
    return [_stem(word) for word in _WORD.findall(indexed(_CAMEL.sub(" ", text)).lower())]


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def shown(found: Sequence[ToolSpec], specs: Sequence[ToolSpec], *, room: int) -> str:
    """The best of `found` in at most about `room` characters, the others by name."""
    if not found:
        return f"No tool matches. {names(specs)}"
    blocks: list[str] = []
    for spec in found[:MOST_FOUND]:
        block = f"{spec.name}: {spec.description}\nparameters: {bytes(spec.parameters).decode()}"
        if blocks and sum(map(len, blocks)) + len(block) > room:
            break
        blocks.append(block)
    rest = [spec.name for spec in found[len(blocks) :]]
    if rest:
        more = f" and {len(rest) - _MOST_NAMED} more" if len(rest) > _MOST_NAMED else ""
        blocks.append(f"Also: {', '.join(rest[:_MOST_NAMED])}{more}.")
    return "\n\n".join(blocks)


def names(specs: Sequence[ToolSpec]) -> str:
    """All of them by name."""
    if not specs:
        return "There are no tools besides those you are told of."
    left = len(specs) - 5 * _MOST_NAMED
    more = f" and {left} more: search for them by what they do" if left > 0 else ""
    return f"There are: {', '.join(spec.name for spec in specs[: 5 * _MOST_NAMED])}{more}."
