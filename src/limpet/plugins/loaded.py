"""What plug-ins give. Kept light: it is imported by every start, the rest only where a plug-in is trusted."""

from __future__ import annotations

from msgspec import Struct

from limpet.toolkit.hooks import FunctionHook
from limpet.toolkit.schema import FunctionTool


class Loaded(Struct, frozen=True):
    """What the trusted plug-ins give, by plug-in and then by name."""

    tools: tuple[FunctionTool, ...] = ()
    hooks: tuple[FunctionHook, ...] = ()


NOTHING_LOADED = Loaded()
