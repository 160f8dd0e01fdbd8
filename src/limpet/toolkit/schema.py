"""Tools from typed functions: the schema a model is told, and the check of what it sends.

    @tool(effect="pure", brief="Read a text file.")
    async def read_file(context: ToolContext, path: str, offset: Annotated[int, "first line"] = 1) -> ToolResult:
        \"\"\"Read a text file of the workspace.\"\"\"

Called by `tools` and by plug-ins. The first paragraph of the docstring is the description.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from inspect import Parameter, cleandoc, signature
from typing import Concatenate, Literal, ParamSpec, get_type_hints

from msgspec import Raw, Struct

from limpet.errors import ArgumentsError
from limpet.toolkit.kinds import Faults, convert, describe, shorten
from limpet.toolkit.unseen import is_unseen
from limpet.types.ports import ToolContext
from limpet.types.tool import Effect, ToolResult, ToolSpec

P = ParamSpec("P")
Function = Callable[..., Awaitable[ToolResult]]
Rare = bool | Literal["sought"]
Sends = bool | Callable[[Mapping[str, object]], bool]

_LONG = 2_000
"""Characters from which an argument stands in a plan by its beginning, size and hash."""
_BEGINNING = 500


class Traits(Struct, frozen=True):
    """What is declared of a tool beside its function.

    `writes` names the parameters that hold paths it changes (as `paths` finds them in the text, where one holds
    several), `whole` those that a plan shows whole however long. `sends`: it carries words out of the conversation, or
    which of its calls do. `rare`: a prompt with little room may leave it out; `sought`: no prompt names it, and only
    `tool_search` finds it.
    """

    effect: Effect
    exclusive: bool
    writes: tuple[str, ...]
    whole: tuple[str, ...]
    brief: str
    sends: Sends = False
    paths: Callable[[str], Sequence[str]] = lambda text: (text,)
    rare: Rare = False


class Bound:
    """A call with checked arguments. `values` holds one Python value for each parameter that was given.

    `sends`: it carries words out of the conversation; `acts`: it does more than read.
    """

    def __init__(self, function: Function, traits: Traits, *, values: Mapping[str, object], workspace: str) -> None:
        self._function = function
        self._traits = traits
        self.name = function.__name__
        self.sends = traits.sends if isinstance(traits.sends, bool) else traits.sends(values)
        self.acts = self.sends or (isinstance(traits.sends, bool) and traits.effect == "unsafe")
        self.values = values
        given = [values[name] for name in traits.writes if name in values]
        paths = [path for text in given if isinstance(text, str) for path in traits.paths(text)]
        # File tools take `@name` for `name` (chat apps and models write it so): both count.
        self.writes = tuple(
            _real(workspace, one) for path in paths for one in dict.fromkeys((path, path.removeprefix("@")))
        )

    def plan(self) -> str:
        """One line that names the call exactly; of long texts the beginning, with size and SHA-256 of the whole."""
        return exact_plan(self.name, self.values, whole=self._traits.whole)

    async def run(self, context: ToolContext) -> ToolResult:
        return await self._function(context, **self.values)


class FunctionTool:
    """A tool made of a typed async function; implements the port `Tool`."""

    def __init__(self, function: Function, traits: Traits, *, tiny: bool = False) -> None:
        self._function = function
        self._traits = traits
        self._tiny = tiny
        self.name = function.__name__

    @property
    def effect(self) -> Effect:
        return self._traits.effect

    @property
    def exclusive(self) -> bool:
        return self._traits.exclusive

    @property
    def rare(self) -> bool:
        return bool(self._traits.rare)

    @property
    def sought(self) -> bool:
        return self._traits.rare == "sought"

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    def tiny(self) -> FunctionTool:
        """The same tool told in its shortest words, for small windows."""
        return FunctionTool(self._function, self._traits, tiny=True)

    def around(self, wrap: Callable[[Function], Function]) -> FunctionTool:
        """The same tool with something around its function, which has to keep its signature (`functools.wraps`)."""
        return FunctionTool(wrap(self._function), self._traits, tiny=self._tiny)

    @cached_property
    def _parameters(self) -> tuple[Parameter, ...]:
        return tuple(signature(self._function).parameters.values())[1:]

    @cached_property
    def _kinds(self) -> dict[str, object]:
        return get_type_hints(self._function, include_extras=True)

    @cached_property
    def _spec(self) -> ToolSpec:
        untyped = [p.name for p in self._parameters if p.name not in self._kinds]
        if untyped:
            raise TypeError(f"{self.name}: the parameter {untyped[0]!r} needs a type, such as {untyped[0]}: str")
        properties = {p.name: describe(self._kinds[p.name], docs=not self._tiny) for p in self._parameters}
        schema: dict[str, object] = {"type": "object", "properties": properties}
        required = [p.name for p in self._parameters if p.default is Parameter.empty]
        if required:
            schema["required"] = required
        text = self._traits.brief if self._tiny else _summary(self._function)
        return ToolSpec(self.name, text, Raw(json.dumps(schema, ensure_ascii=False, separators=(",", ":")).encode()))

    def bind(self, arguments: str, *, workspace: str) -> Bound:
        """Check `arguments`. Raises `ArgumentsError` that lists every fault at once."""
        given = _object(arguments, self.name)
        faults = Faults()
        values: dict[str, object] = {}
        known = {p.name: p for p in self._parameters}
        for name in given:
            if name not in known:
                faults.add(name, _unknown(name, tuple(known)))
        for name, parameter in known.items():
            needed = parameter.default is Parameter.empty
            if name not in given or (given[name] is None and not needed):
                if needed:
                    faults.add(name, "required argument is missing")
                continue
            values[name] = convert(self._kinds[name], given[name], where=name, faults=faults)
        if faults:
            raise ArgumentsError(
                f"{self.name} was not run, its arguments are wrong:\n{faults}",
                hint="Send the call again with all required arguments and nothing else.",
            )
        return Bound(self._function, self._traits, values=values, workspace=workspace)


def tool(
    *,
    effect: Effect = "unsafe",
    exclusive: bool = False,
    writes: tuple[str, ...] = (),
    whole: tuple[str, ...] = (),
    brief: str = "",
    sends: Sends = False,
    paths: Callable[[str], Sequence[str]] = lambda text: (text,),
    rare: Rare = False,
) -> Callable[[Callable[Concatenate[ToolContext, P], Awaitable[ToolResult]]], FunctionTool]:
    """Make a tool of a typed async function whose first parameter is the `ToolContext`.

    `writes`, `paths`, `whole`, `sends` and `rare`: see `Traits`. `brief` is the description for small windows.
    """

    def make(function: Callable[Concatenate[ToolContext, P], Awaitable[ToolResult]]) -> FunctionTool:
        short = brief or _summary(function).split(". ")[0]
        return FunctionTool(function, Traits(effect, exclusive, writes, whole, short, sends, paths, rare))

    return make


def _summary(function: Function) -> str:
    return " ".join(cleandoc(function.__doc__ or "").split("\n\n")[0].split())


def _object(arguments: str, name: str) -> dict[str, object]:
    try:
        given = json.loads(arguments or "{}", strict=False)
    except ValueError as error:
        raise ArgumentsError(
            f"{name} was not run: its arguments are not complete JSON ({error}); the call was probably cut off.",
            hint="Send the whole call again; write long content in several smaller parts.",
        ) from None
    if not isinstance(given, dict):
        raise ArgumentsError(f"{name} was not run: expected one JSON object of arguments, got {shorten(given)}")
    return {str(key): value for key, value in given.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _unknown(name: str, known: tuple[str, ...]) -> str:
    from difflib import get_close_matches  # rare: only for a wrong call

    close = get_close_matches(name, known, n=1)
    guess = f"; did you mean {close[0]!r}?" if close else ""
    return f"unknown argument{guess} (known: {', '.join(known) or 'none'})"


def exact_plan(name: str, values: Mapping[str, object], *, whole: tuple[str, ...] = ()) -> str:
    """One line that names a call exactly; of long texts, save those of `whole`, the beginning, size and SHA-256."""
    return " ".join([name, *(f"{_name(key)}={_exact(value, key in whole)}" for key, value in values.items())])


def _name(key: str) -> str:
    """A server's own names of arguments may be anything, also what looks like the end of a plan."""
    return key if re.fullmatch(r"[\w .-]+", key, re.ASCII) else visible(json.dumps(key, ensure_ascii=False))


def visible(text: str) -> str:
    """`text` with each character that cannot be seen, or that moves others, written as its code."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(f"\\u{ord(char):04x}" if is_unseen(char) else char for char in text)


def _exact(value: object, whole: bool) -> str:
    text = visible(json.dumps(value, ensure_ascii=False, default=repr))
    if whole or len(text) <= _LONG:
        return text
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[:_BEGINNING]}… <{len(text)} characters, sha256 {digest}>"


def _real(workspace: str, path: str) -> str:
    try:
        return os.path.realpath(os.path.join(workspace, path))
    except ValueError:  # a NUL byte: the tool itself refuses it
        return os.path.join(workspace, path)
