"""A tool of a plug-in, so wrapped that whatever its code does, the call ends in one result that names the plug-in."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from functools import wraps

from limpet.errors import LimpetError, ToolError
from limpet.toolkit.schema import Function, FunctionTool
from limpet.types.ports import ToolContext
from limpet.types.tool import ToolResult, text_result

log = logging.getLogger(__name__)


def guarded(tool: FunctionTool, plugin: str, *, seconds: float) -> FunctionTool:
    """The same tool; a call has `seconds`, and fails with a `ToolError` that names `plugin`."""

    def around(function: Function) -> Function:
        return _guard(function, plugin, seconds)

    return tool.around(around)


def _guard(function: Function, plugin: str, seconds: float) -> Function:
    @wraps(function)
    async def call(context: ToolContext, **values: object) -> ToolResult:
        return _result(await _outcome(function(context, **values), plugin, seconds), plugin)

    return call


async def _outcome(work: Awaitable[object], plugin: str, seconds: float) -> object:
    """What the plug-in's function gives. A boundary: any code may run here. Raises `ToolError`."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await work
    except LimpetError:
        raise
    except asyncio.CancelledError:
        if (task := asyncio.current_task()) is None or task.cancelling():
            raise
        raise ToolError(f"The plug-in {plugin} failed: it gave up the call by itself.") from None
    except (Exception, SystemExit) as error:
        if isinstance(error, TimeoutError) and limit.expired():
            raise ToolError(f"The plug-in {plugin} did not answer within {seconds:g} s.") from None
        log.exception("plug-in %s failed in a call", plugin)
        raise ToolError(f"The plug-in {plugin} failed: {type(error).__name__}: {error}") from None


def _result(result: object, plugin: str) -> ToolResult:
    """A bare text is a result too. Raises `ToolError` for anything else that is none."""
    if isinstance(result, ToolResult):
        return result
    if isinstance(result, str):
        return text_result(result)
    raise ToolError(f"The plug-in {plugin} failed: it gave back {type(result).__name__}, not a ToolResult or text.")
