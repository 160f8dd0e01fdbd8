"""`/skill`, and a command for each skill that people may call: its text goes into the conversation with what they ask.

The text is the owner's own or was installed by the owner, so the message keeps the trust of who sent it.
"""

from __future__ import annotations

from collections.abc import Collection

from limpet.assistant.commands_mcp import say
from limpet.assistant.orders import Order
from limpet.assistant.services import Called

LONGEST = 20_000
"""Characters of a skill that go into the message; of a longer one the model reads the file."""
NONE = "There are no skills to call. docs/skills.md says how to add one."


async def skill(order: Order) -> str:
    """List the skills, or have one used."""
    if not order.arguments:
        return "\n".join(_lines(order)) or NONE
    name, _, request = order.arguments.partition(" ")
    found = _find(order, name)
    if found is None:
        return f"There is no skill {name}. /skill lists them."
    await _say(order, found, request.strip())
    return ""


async def say_named(order: Order, name: str) -> bool:
    """Have the skill with the command `name` used; whether there is one."""
    found = _find(order, name)
    if found is not None:
        await _say(order, found, order.arguments)
    return found is not None


def listed(order: Order, *, taken: Collection[str]) -> list[str]:
    """A line for each skill with a command of its own, which one of `taken` never is."""
    skills = order.conversation.services.skills
    called = skills.callable() if skills else ()
    return [f"/{one.command} [what to do] - {_about(one)}" for one in called if one.command not in taken]


def _find(order: Order, name: str) -> Called | None:
    skills = order.conversation.services.skills
    return skills.named(name) if skills else None


def _lines(order: Order) -> list[str]:
    skills = order.conversation.services.skills
    return [f"/skill {one.name} - {_about(one)}" for one in (skills.callable() if skills else ())]


def _about(one: Called) -> str:
    lacks = f" (lacks {', '.join(one.missing)})" if one.missing else ""
    return f"{one.description[:120]}{lacks}"


async def _say(order: Order, one: Called, request: str) -> None:
    text = one.instructions
    if len(text) > LONGEST:
        text = f"(It is long: read {one.location} first.)"
    lacks = f"\n[This machine lacks {', '.join(one.missing)}.]" if one.missing else ""
    asked = request or "Do what it is for."
    await say(order, f"[Use the skill {one.name}:]\n{text}{lacks}\n[End of the skill.]\n\n{asked}", trust="owner")
