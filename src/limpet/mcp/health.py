"""How a server is, in words, as far as it is known without starting it."""

from __future__ import annotations

from datetime import datetime

from limpet.mcp.kept import Records
from limpet.mcp.spec import ServerSpec


def health(spec: ServerSpec, records: Records, *, enabled: bool) -> str:
    """The last start of any process counts."""
    record = records.read(spec.name)
    if not enabled:
        return "switched off"
    if spec.fault:
        return f"cannot be started: {spec.fault}"
    if record.fingerprint != spec.fingerprint:
        return "never started"
    if record.failure:
        return f"failed {_moment(record.failed_at)}: {record.failure}"
    return f"{len(record.tools)} tools, last started {_moment(record.started_at)}"


def _moment(at: int) -> str:
    return datetime.fromtimestamp(at / 1000).strftime("%Y-%m-%d %H:%M")
