"""Settings of hooks: commands that look in while turns run (`[[hooks]]`)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from limpet.types.hook import HookPoint

Name = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$",
        description="a name of letters, digits, `_`, `-` and `.`, up to 64",
    ),
]


class HookSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """One hook. `command` is run by a shell in the sandbox at each of `points`, with the event as JSON on its input.

    `tool` is a pattern of the tools it is about, at points that have one. `timeout` is seconds. It sees the workspace,
    what of the file system is in `reads` (folders or files), and this `network`.
    """

    name: Name
    points: Annotated[tuple[HookPoint, ...], Meta(min_length=1)]
    command: Annotated[str, Meta(min_length=1)]
    tool: Annotated[str, Meta(min_length=1)] = "*"
    timeout: Annotated[float, Meta(gt=0, le=600)] = 5.0
    network: Literal["none", "open"] = "none"
    reads: tuple[str, ...] = ()
