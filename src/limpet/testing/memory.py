"""A session in memory, for tests: see `limpet.agent.memory`."""

from __future__ import annotations

from limpet.agent.memory import MemorySession

__all__ = ["MemorySession"]
