"""`/goal` and `/plan`: what the agent is after, for the owner to see and to change."""

from __future__ import annotations

from msgspec import structs

from limpet.assistant.orders import Order
from limpet.errors import InputError
from limpet.session.aims import Aims
from limpet.store import entries
from limpet.tools.aims import LONGEST, plan_fault
from limpet.types.entry import GoalEntry, PlanEntry, PlanStep

GOAL_USAGE = "/goal TEXT sets one, /goal budget 2.50 or /goal budget 50 steps limits it, /goal done or drop ends it."
PLAN_USAGE = "/plan add TEXT, /plan done 2, /plan drop 2 and /plan clear change it."


async def goal(order: Order) -> str:
    word, _, rest = order.arguments.partition(" ")
    aims = order.conversation.log().aims
    if not word:
        return f"{aims.goal_text()}\n{GOAL_USAGE}"
    if word not in ("done", "drop", "budget"):
        made = GoalEntry(text=_fitting(order.arguments))
    elif (known := aims.open) is None:
        return f"There is no open goal. {GOAL_USAGE}"
    elif word == "budget":
        made = _with_budget(known, rest)
    else:
        made = structs.replace(known, state="done" if word == "done" else "dropped")
    return (await _record(order, made)).goal_text()


def _with_budget(goal: GoalEntry, words: str) -> GoalEntry:
    """Raises `InputError`."""
    amount, _, unit = words.removeprefix("$").partition(" ")
    try:
        number = float(amount)
        if number < 0 or number > 1e9 or number != number:
            raise ValueError
    except ValueError:
        raise InputError("That is no budget.", hint=GOAL_USAGE) from None
    if unit.strip() in ("step", "steps"):
        return structs.replace(goal, steps=int(number), exhausted=False)
    return structs.replace(goal, dollars=number, exhausted=False)


async def plan(order: Order) -> str:
    word, _, rest = order.arguments.partition(" ")
    steps = list(order.conversation.log().aims.plan)
    if not word:
        return f"{order.conversation.log().aims.plan_text()}\n{PLAN_USAGE}"
    if word == "clear":
        steps = []
    elif word == "add":
        steps.append(PlanStep(_fitting(rest)))
    elif word in ("done", "drop"):
        place = _place(rest, len(steps))
        steps[place : place + 1] = [structs.replace(steps[place], state="done")] if word == "done" else []
    else:
        return PLAN_USAGE
    if fault := plan_fault(steps):
        raise InputError(f"That does not work: {fault}.")
    return (await _record(order, PlanEntry(tuple(steps)))).plan_text()


def _place(number: str, count: int) -> int:
    """Raises `InputError`."""
    if not number.strip().isdecimal() or not 1 <= int(number) <= count:
        raise InputError(f"There are steps 1 to {count}." if count else "There is no plan.", hint=PLAN_USAGE)
    return int(number) - 1


def _fitting(text: str) -> str:
    """Raises `InputError`."""
    text = " ".join(text.split())
    if not text or len(text) > LONGEST:
        raise InputError(f"A text of 1 to {LONGEST} characters is needed.")
    return text


async def _record(order: Order, payload: GoalEntry | PlanEntry) -> Aims:
    """Append the entry; gives what is in force then."""
    conversation, lease = order.conversation, order.lease
    assert lease is not None
    services = conversation.services
    now = services.clock.now()
    await services.store.write(lambda connection: entries.append(connection, lease, payload, turn="", now=now))
    return conversation.log().aims
