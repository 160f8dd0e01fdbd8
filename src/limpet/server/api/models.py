"""`/v1/models`: the agents, in OpenAI's shape or Anthropic's."""

from __future__ import annotations

from collections.abc import Sequence

from limpet.config.agents import MAIN
from limpet.server.api.access import Caller
from limpet.server.api.asks import Fault
from limpet.server.api.shapes import encode

NAME = "limpet"
SINCE = 1_764_547_200
"""When agents are said to have been made (UTC s): they have no date of their own."""


def names(agents: Sequence[str], caller: Caller) -> list[str]:
    """The models that a caller may use: `limpet` is the agent that is meant when none is named."""
    own = [one for one in agents if not caller.agent or one == caller.agent]
    return [NAME, *(f"{NAME}/{one}" for one in own)] if own else []


def agent_of(model: str, agents: Sequence[str], caller: Caller) -> str:
    """The agent that a model stands for. Raises `Fault`."""
    known = names(agents, caller)
    if model not in known:
        there = ", ".join(known)
        raise Fault(
            404, f"There is no model {model[:80]!r}. There are: {there}.", code="model_not_found", field="model"
        )
    return (caller.agent or MAIN) if model == NAME else model.removeprefix(f"{NAME}/")


def listed(found: Sequence[str], *, anthropic: bool) -> bytes:
    if anthropic:
        ends = {"first_id": found[0] if found else None, "last_id": found[-1] if found else None}
        return encode({"data": [_anthropic(one) for one in found], "has_more": False, **ends})
    return encode({"object": "list", "data": [_openai(one) for one in found]})


def one(name: str, *, anthropic: bool) -> bytes:
    return encode(_anthropic(name) if anthropic else _openai(name))


def _openai(name: str) -> dict[str, object]:
    return {"id": name, "object": "model", "created": SINCE, "owned_by": NAME}


def _anthropic(name: str) -> dict[str, object]:
    return {"type": "model", "id": name, "display_name": name, "created_at": "2025-12-01T00:00:00Z"}
