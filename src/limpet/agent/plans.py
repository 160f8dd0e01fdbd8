"""The exact plan of a call, as the owner is asked for it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from limpet.toolkit.schema import visible
from limpet.types.approval import Wanted
from limpet.types.ports import BoundCall, Tool, ToolContext, Verdict


def wanted(call: str, tool: Tool, bound: BoundCall, *, verdict: Verdict, context: ToolContext) -> Wanted:
    """What `verdict` wants of the owner for the call named `call`."""
    name = tool.spec.name
    return Wanted(
        call=call,
        tool=name,
        plan=context.redactor.redact(bound.plan()),
        hash=plan_hash(name, bound.values, place=verdict.place, workspace=context.workspace),
        reason=visible(context.redactor.redact(verdict.reason)),
    )


def plan_hash(tool: str, values: Mapping[str, object], *, place: str, workspace: str) -> str:
    """SHA-256 (hex) over all that a call does: tool, arguments in one canonical form, place and workspace."""
    plan = json.dumps([tool, values, place, workspace], sort_keys=True, ensure_ascii=True, default=repr)
    return hashlib.sha256(plan.encode()).hexdigest()
