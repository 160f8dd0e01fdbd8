"""`goal` and `plan`: what the agent is after over many turns. Both are entries of the session's log (effect `row`)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import structs

from limpet.errors import ToolError
from limpet.toolkit.schema import tool
from limpet.types.entry import GoalEntry, PlanEntry, PlanStep
from limpet.types.ports import ToolContext
from limpet.types.tool import ToolResult, text_result

MOST_STEPS = 40
LONGEST = 400
"""Characters of a goal, of its progress, and of a step."""


@tool(effect="row", exclusive=True)
async def goal(
    context: ToolContext,
    action: Literal["set", "progress", "done", "drop"],
    text: Annotated[str, "for set and progress"] = "",
    dollars: Annotated[float, "budget"] = 0.0,
    steps: Annotated[int, "budget: model requests"] = 0,
) -> ToolResult:
    """Keep a goal in mind over many turns. You and the user see it with each message."""
    text = " ".join(text.split())
    if action in ("set", "progress") and not text:
        raise ToolError(f"{action} needs a text")
    if len(text) > LONGEST:
        raise ToolError(f"the text has {len(text)} characters; at most {LONGEST} fit")
    if dollars < 0 or steps < 0:
        raise ToolError("a budget cannot be negative")
    if action == "set":
        context.record(GoalEntry(text=text, dollars=dollars, steps=steps))
        return text_result("The goal is set.")
    known = context.goal()
    if known is None:
        raise ToolError("there is no open goal", hint="Set one first.")
    if action == "progress":
        context.record(structs.replace(known, progress=text))
        return text_result("Noted.")
    state: Literal["done", "dropped"] = "done" if action == "done" else "dropped"
    context.record(structs.replace(known, state=state, progress=text or known.progress))
    return text_result(f"The goal is {state}.")


@tool(effect="row", exclusive=True)
async def plan(context: ToolContext, steps: list[PlanStep]) -> ToolResult:
    """Replace your plan: all steps in order, at most one in_progress, [] for none. For work of several steps."""
    if fault := plan_fault(steps):
        raise ToolError(f"{fault}; the plan is as before")
    made = tuple(structs.replace(step, text=" ".join(step.text.split())) for step in steps)
    context.record(PlanEntry(made))
    return text_result(f"{sum(step.state == 'done' for step in made)} of {len(made)} steps done.")


def plan_fault(steps: list[PlanStep]) -> str:
    """Why these cannot be a plan; empty when they can."""
    if len(steps) > MOST_STEPS:
        return f"a plan has at most {MOST_STEPS} steps"
    if any(not step.text.strip() for step in steps):
        return "a step has no text"
    if any(len(step.text) > LONGEST for step in steps):
        return f"a step has at most {LONGEST} characters"
    if sum(step.state == "in_progress" for step in steps) > 1:
        return "more than one step is in_progress"
    return ""
