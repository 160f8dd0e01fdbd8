"""Hooks from functions, as plug-ins offer them.

@hook("before_tool")
async def no_mail_at_night(event: ToolWanted) -> str:
    return "not at night" if event.name == "send_mail" else ""
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ParamSpec

from msgspec import Struct, structs

from limpet.types.hook import HookEvent, HookPoint

P = ParamSpec("P")


class FunctionHook(Struct, frozen=True):
    """An async function and the points at which it is called; implements `Hook`."""

    name: str
    points: frozenset[HookPoint]
    function: Callable[..., Awaitable[object]]
    timeout: float = 0.0

    def named(self, owner: str) -> FunctionHook:
        """The same, said to be of `owner`."""
        return structs.replace(self, name=f"{owner}: {self.name}")

    async def run(self, event: HookEvent) -> str:
        """Raises `TypeError` when the function gives back neither a text nor None."""
        said = await self.function(event)
        if said is None:
            return ""
        if not isinstance(said, str):
            raise TypeError(f"the hook gave back {type(said).__name__}, not a text or None")
        return said


def hook(*points: HookPoint) -> Callable[[Callable[P, Awaitable[str | None]]], FunctionHook]:
    """Make a hook of an async function that takes the event of its point."""

    def make(function: Callable[P, Awaitable[str | None]]) -> FunctionHook:
        return FunctionHook(getattr(function, "__name__", "hook"), frozenset(points), function)

    return make
