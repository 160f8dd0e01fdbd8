"""`/cron`: the jobs of this agent, for the owner to see and to change."""

from __future__ import annotations

from limpet.assistant.orders import Order
from limpet.store import jobs
from limpet.types.job import JobAct

USAGE = "/cron pause, resume, run or remove NAME changes one. Ask me for a new one, or use `limpet cron add`."
ACTS: tuple[JobAct, ...] = ("remove", "pause", "resume", "run")


async def cron(order: Order) -> str:
    services = order.conversation.services
    schedules = services.schedules
    if schedules is None:
        return "There are no jobs here."
    word, _, name = order.arguments.partition(" ")
    act: JobAct | None = next((one for one in ACTS if one == word), None)
    if act is None or not name.strip():
        return f"{schedules.listed()}\n{USAGE}"
    change, told = schedules.act(act, name.strip())
    await services.store.write(lambda connection: jobs.apply(connection, change))
    services.nudges.send()
    return told
