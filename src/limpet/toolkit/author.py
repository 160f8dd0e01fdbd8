"""Tools of authors: `@tool` over any typed function, `async` or not, with a `ToolContext` or without.

    @tool
    def tide(place: str) -> str:
        \"\"\"When the next high tide is.\"\"\"
        return "17:42"

Called by plug-ins and by programs that embed an agent; Limpet's own tools use `schema.tool`, which asks for more.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Protocol, overload

from msgspec import json

from limpet.toolkit import schema
from limpet.toolkit.schema import FunctionTool, Rare, Sends
from limpet.types.ports import ToolContext
from limpet.types.tool import Effect, ToolResult, text_result

AnyFunction = Callable[..., object]


class Maker(Protocol):
    """What `tool(...)` gives."""

    def __call__(self, function: AnyFunction, /) -> FunctionTool: ...


@overload
def tool(function: AnyFunction, /) -> FunctionTool: ...
@overload
def tool(
    *,
    effect: Effect = "unsafe",
    exclusive: bool = False,
    writes: tuple[str, ...] = (),
    whole: tuple[str, ...] = (),
    brief: str = "",
    sends: Sends = False,
    rare: Rare = False,
) -> Maker: ...
def tool(
    function: AnyFunction | None = None,
    /,
    *,
    effect: Effect = "unsafe",
    exclusive: bool = False,
    writes: tuple[str, ...] = (),
    whole: tuple[str, ...] = (),
    brief: str = "",
    sends: Sends = False,
    rare: Rare = False,
) -> FunctionTool | Maker:
    """Make a tool of a function: its annotations are the schema, the first paragraph of its docstring the description.

    What it returns is a `ToolResult`, a text, or anything that JSON can say. One that is not `async` runs in a thread.
    `effect` says what may happen to a call after a crash: `pure` and `idempotent` ones run again, `unsafe` ones never.
    The others: see `schema.Traits`. A parameter without an annotation is a `TypeError` once its `spec` is asked for.
    """

    def make(given: AnyFunction) -> FunctionTool:
        decorate = schema.tool(
            effect=effect, exclusive=exclusive, writes=writes, whole=whole, brief=brief, sends=sends, rare=rare
        )
        return decorate(adapted(given))

    return make if function is None else make(function)


def adapted(function: AnyFunction) -> Callable[..., Awaitable[ToolResult]]:
    """`function` as tools are called: with a context first, awaited, with a `ToolResult`."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    takes_context = bool(parameters) and _is_context(parameters[0])

    @functools.wraps(function)
    async def run(context: ToolContext, **values: object) -> ToolResult:
        first = (context,) if takes_context else ()
        if not inspect.iscoroutinefunction(function):
            return _result(await asyncio.to_thread(function, *first, **values))
        found = function(*first, **values)
        return _result(await found if inspect.isawaitable(found) else found)

    if not takes_context:
        context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=ToolContext)
        run.__signature__ = signature.replace(parameters=[context, *parameters])  # pyright: ignore[reportAttributeAccessIssue] (read by `inspect`)
    return run


def _is_context(parameter: inspect.Parameter) -> bool:
    kind = parameter.annotation
    if kind is inspect.Parameter.empty:
        return parameter.name == "context"
    name = kind if isinstance(kind, str) else getattr(kind, "__name__", "")
    return str(name).rpartition(".")[2] == "ToolContext"


def _result(given: object) -> ToolResult:
    if isinstance(given, ToolResult):
        return given
    if isinstance(given, str):
        return text_result(given)
    return text_result("done" if given is None else json.encode(given).decode())
