"""`ask`: a question to the owner, which waits for its answer as an approval does."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated

from limpet.errors import ToolError
from limpet.toolkit.schema import tool
from limpet.types.approval import Wanted
from limpet.types.ports import ToolContext
from limpet.types.tool import ToolResult, text_result

MOST = 10
LONGEST = 1_000
"""Choices, and characters of a question or a choice."""


@tool(effect="idempotent")
async def ask(
    context: ToolContext,
    question: str,
    choices: list[str] | None = None,
    only_choices: Annotated[bool, "no free answer"] = False,
) -> ToolResult:
    """Ask the user something that you need to know before you go on, and wait for the answer."""
    offered = tuple(choices or ())
    if not question.strip():
        raise ToolError("the question is empty")
    if len(offered) > MOST or any(len(text) > LONGEST for text in (question, *offered)):
        raise ToolError(f"at most {MOST} choices, and {LONGEST} characters each")
    if only_choices and not offered:
        raise ToolError("only_choices needs choices")
    ruling = await context.approvals.ask(
        Wanted(
            call=context.key,
            tool="ask",
            plan=context.redactor.redact(question),
            hash=hashlib.sha256(json.dumps(["ask", question, offered, only_choices]).encode()).hexdigest(),
            reason="the agent wants to know",
            kind="question",
            choices=tuple(map(context.redactor.redact, offered)),
            only_choices=only_choices,
        )
    )
    if ruling.allowed:
        return text_result(ruling.text)
    why = ruling.text.replace("Not approved", "Not answered") or "The user did not want to answer"
    return text_result(f"{why}. Go on without an answer, or say what you need to know.", is_error=True)
