"""`cron`: jobs that the agent makes, lists and changes for who speaks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from limpet.errors import InputError, ToolError
from limpet.toolkit.schema import FunctionTool, tool
from limpet.types.job import JobWish
from limpet.types.ports import Schedules, ToolContext
from limpet.types.tool import ToolResult, text_result


def make_cron(schedules: Schedules) -> FunctionTool:
    """The tool over the jobs of an agent."""

    @tool(effect="row", whole=("task", "remind"), brief="Reminders and jobs.", sends=_changes, rare="sought")
    async def cron(
        context: ToolContext,
        action: Literal["add", "list", "remove", "pause", "resume", "run"],
        name: Annotated[str, "of the job"] = "",
        remind: Annotated[str, "add: words that are said then, as they are"] = "",
        task: Annotated[str, "add: instead, what you are to do then; complete, you will know nothing else"] = "",
        when: Annotated[
            str, "add: once (2026-12-01 10:00, in 20 minutes, tomorrow 7:30), `every 2h`, or cron (30 8 * * 1-5)"
        ] = "",
        zone: Annotated[str, "IANA name, else the user's"] = "",
        to: Annotated[str, "chat for the answer, else this one"] = "",
    ) -> ToolResult:
        """Reminders, timers, schedules: have something said or done at a time, once or again and again. Tell the user
        the local times it confirms."""
        try:
            if action == "list":
                return text_result(schedules.listed(session=context.session))
            if action == "add":
                if bool(remind.strip()) == bool(task.strip()):
                    raise ToolError("give either remind or task")
                wish = JobWish(
                    text=context.redactor.redact(remind or task),
                    says=bool(remind.strip()),
                    when=when,
                    zone=zone,
                    name=name,
                    to=to,
                )
                change, told = schedules.add(wish, session=context.session)
            else:
                change, told = schedules.act(action, name, session=context.session)
        except InputError as error:
            raise ToolError(str(error), hint=error.hint) from None
        context.post(change)
        return text_result(told)

    return cron


def _changes(values: Mapping[str, object]) -> bool:
    """What is set going acts later: that is a sink."""
    return values.get("action") != "list"
