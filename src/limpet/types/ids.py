"""Names for entries, turns and the like."""

from __future__ import annotations

import secrets
import time


def new_id(prefix: str = "") -> str:
    """A unique name of 22 characters after `prefix`, sortable by the millisecond it was made."""
    return f"{prefix}{time.time_ns() // 1_000_000:012x}{secrets.token_hex(5)}"
