"""`/cron`: the jobs of this agent, for the owner to see, to make and to change."""

from __future__ import annotations

import re

from limpet.assistant.orders import Order
from limpet.errors import InputError
from limpet.store import jobs
from limpet.types.job import JobAct, JobChange, JobWish
from limpet.types.ports import Schedules

USAGE = (
    "/cron add WHAT --at, --every or --cron WHEN makes one (--says: a reminder, word for word; --zone, --name, --to,"
    " --model, --allow TOOL, --main); /cron pause, resume, run or remove NAME changes one."
)
ACTS: tuple[JobAct, ...] = ("remove", "pause", "resume", "run")
WHEN = ("at", "every", "cron")
VALUES = (*WHEN, "zone", "name", "to", "model", "allow")
FLAGS = ("says", "main")
_DASHES = r"(?:^|\s)(?:--|\u2014|\u2013)"
"""Chats make one dash of two."""
_OPTION = rf"{_DASHES}({'|'.join((*VALUES, *FLAGS))})(?=\s|=|$)=?"


async def cron(order: Order) -> str:
    services = order.conversation.services
    schedules = services.schedules
    if schedules is None:
        return "There are no jobs here."
    word, _, rest = order.arguments.partition(" ")
    try:
        found = _change(schedules, order, word=word, rest=rest.strip())
    except InputError as error:
        return error.present()
    if found is None:
        return f"{schedules.listed()}\n{USAGE}"
    change, told = found
    if not await services.store.write(lambda connection: jobs.apply(connection, change)):
        return "Nothing was changed: meanwhile the job is gone, or another one has its name."
    services.nudges.send()
    return told


def _change(schedules: Schedules, order: Order, *, word: str, rest: str) -> tuple[JobChange, str] | None:
    """What is wanted, and how it is confirmed; None where nothing is. Raises `InputError`."""
    if word == "add" and rest:
        return schedules.add(wish_of(rest), order=order.row)
    act: JobAct | None = next((one for one in ACTS if one == word), None)
    return schedules.act(act, rest, order=order.row) if act is not None and rest else None


def wish_of(said: str) -> JobWish:
    """The job that `WHAT --every 2h --says` asks for: a value goes on to the next option. Raises `InputError`."""
    what, *pieces = re.split(_OPTION, said)
    given: dict[str, list[str]] = {}
    left = [what]
    for name, value in zip(pieces[::2], pieces[1::2], strict=True):
        if name in FLAGS:
            left.append(value)
        given.setdefault(name, []).append(_plain(value) if name in VALUES else "")
    text = _plain(" ".join(filter(None, map(str.strip, left))))
    if unknown := re.search(rf"{_DASHES}([a-z-]+)", " ".join(one for values in given.values() for one in values)):
        raise InputError(f"There is no option --{unknown[1]}.", hint=USAGE)
    when = [(kind, given[kind][-1]) for kind in WHEN if kind in given]
    if len(when) != 1:
        raise InputError("Say when, with exactly one of --at, --every and --cron.", hint=USAGE)
    kind, moment = when[0]
    return JobWish(
        text=text,
        says="says" in given,
        when=moment if kind == "at" else f"{kind} {moment}",
        main="main" in given,
        grants=tuple(given.get("allow", ())),
        **{name: given[name][-1] for name in ("zone", "name", "to", "model") if name in given},
    )


def _plain(value: str) -> str:
    """Without the quotes around it."""
    value = value.strip()
    quoted = len(value) > 1 and (value[0], value[-1]) in (('"', '"'), ("'", "'"), ("“", "”"))
    return value[1:-1].strip() if quoted else value
