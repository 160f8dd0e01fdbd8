"""How scripts of skills run: where, with what limits, seeing what."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from limpet.sandbox.limits import Limits
from limpet.sandbox.network import NO_NETWORK, Network
from limpet.sandbox.run import Job, Sandbox
from limpet.skills.shelf import Shelf
from limpet.types.ports import Tool


class Runner(Struct, frozen=True):
    """`protected` gives the files of a workspace that cannot be written, `shown` the folders outside it that are seen.

    `watch` is called before a job; what it gives is called after it, with the key of the call, and says what was put
    right.
    """

    sandbox: Sandbox
    limits: Limits = Limits()
    network: Network = NO_NETWORK
    protected: Callable[[str], tuple[str, ...]] = lambda workspace: ()
    shown: Callable[[], tuple[str, ...]] = tuple
    watch: Callable[[Job], Callable[[str], str]] = lambda job: lambda key: ""


def found_tools(shelf: Shelf, runner: Runner) -> tuple[Tool, ...]:
    """The tools that skills bring; where none does, nothing of them is loaded."""
    if not any(skill.tools for skill in shelf.offered):
        return ()
    from limpet.skills.tools import tools_of  # only where there are any

    return tools_of(shelf.offered, runner)
