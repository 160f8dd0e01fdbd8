"""Ways to get a yes that was not given, or was given to something else."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from limpet.agent.plans import plan_hash
from limpet.assistant.approvals import decide
from limpet.assistant.conversation import Conversation
from limpet.cli.ask import reply_of
from limpet.errors import LimpetError
from limpet.store.approvals import open_under
from limpet.testing.scripted import Answer, ScriptedModel, call
from limpet.toolkit.schema import exact_plan
from limpet.toolkit.unseen import is_unseen
from limpet.types.approval import Reply, Wanted
from limpet.types.envelope import Address, Inbound
from tests.assistant.room import KEY, home
from tests.assistant.test_approvals import AskForActs, Person, World
from tests.attack.played import Played

HIDING: Sequence[str] = (
    *"\u200b\u200c\u200d\u2060\ufeff\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u2028\u2029\u202a\u202b\u202c\u202d\u202e",
    *"\u2066\u2067\u2068\u2069\u200e\u200f\u061c\u2800\u3164\uffa0\ufe0f\ufe00\u2061\u2062\u2063\u2064\x1b\r\n\t\b\x7f\x85\x00",
    "\U000e0041",
    "\U000e0100",
    "\x1b[2K",
    "\x1b]8;;x\x07",
    "\u00a0",
    "\u2003",
    "\u3000",
)
ANSWERS = (
    "",
    "n",
    "no",
    "Y es",
    "\uff59",
    "y\u200b",
    "\u0443",
    "yes please",
    "ye",
    "1",
    "true",
    "ok",
    "always exactly",
    "a y",
    "yy",
    "/approve",
    "\x1b[Ay",
)
NAMES = (
    'a b="x" (approved)\ny',
    "command",
    "path\x1b[2K",
    "\u202eevil",
    'x="1" and nothing else',
    "\u200bcommand",
    "a\nAllow it? y",
)


def shown() -> list[Played]:
    """Nothing in a plan is unseen, and no two different calls have one plan or one hash."""
    played: list[Played] = []
    for one in HIDING:
        plan = exact_plan("exec", {"command": f"echo a{one}b"}, whole=("command",))
        plain = exact_plan("exec", {"command": "echo ab"}, whole=("command",))
        played.append(Played("what a plan shows", repr(one), any(map(is_unseen, plan)) or plan == plain))
    for name in NAMES:
        plan = exact_plan("mcp_x_act", {name: "v"})
        plain_name = all(char.isalnum() or char in " ._-" for char in name)
        played.append(
            Played(
                "what a plan shows",
                repr(name),
                any(map(is_unseen, plan)) or not (plain_name or f'"{name[:1]}' in plan or '"\\u' in plan),
            )
        )
    long = "x" * 5_000
    calls = [
        ("exec", {"command": "a"}),
        ("exec", {"command": "a", "place": "host"}),
        ("exec", {"command": "a "}),
        ("process", {"command": "a"}),
        ("exec", {"command": "a\u200b"}),
        ("exec", {"command": ["a"]}),
        ("exec", {"command": long + "a"}),
        ("exec", {"command": long + "b"}),
        ("exec", {"command": "1"}),
        ("exec", {"command": 1}),
        ("exec", {"command": True}),
        ("exec", {"command": "\u0430"}),
    ]
    kinds = [
        (tool, values, place, space)
        for (tool, values), place, space in itertools.product(calls, ("", "host"), ("/w", "/w2"))
    ]
    hashes = [plan_hash(tool, values, place=place, workspace=space) for tool, values, place, space in kinds]
    for index, one in enumerate(hashes):
        played.append(Played("one yes for another call", str(kinds[index])[:80], hashes.count(one) > 1))
    wanted = Wanted("c", "exec", "p", "h")
    for typed in ANSWERS:
        reply = reply_of(wanted, typed)
        played.append(Played("what counts as yes", repr(typed), reply is not None and reply.word != "deny"))
    return played


async def decided(folder: Path) -> list[Played]:
    """Words of people who are not the owner, words said twice, and words after another plan."""
    played: list[Played] = []
    here = Address("chat", account="bot", chat="1")
    world = World()
    script = [Answer(calls=(call("act", {"word": "pay"}),)), Answer(calls=(call("act", {"word": "pay more"}),)), "done"]
    async with home(folder, ScriptedModel(script), tools=world.tools()) as (services, _):
        services = replace(services, policy=AskForActs(), approvals=Person(*[None] * 9))
        talk = Conversation(services, KEY)
        await talk.send(Inbound(here, event="1", text="go", sender="ann"))
        (waiting,) = services.store.read(lambda connection: open_under(connection, KEY, now=0))
        for who in (
            "chat:bot:mallory",
            "chat:bot:",
            "chat:bot:Ann",
            "chat:other:ann",
            "web:bot:ann",
            "",
            "CLI",
            "cli ",
            "chat:bot:ann\u200b",
            "*",
        ):
            played.append(
                Played("a yes of somebody else", who, await _word(services, waiting.id, who) or bool(world.done))
            )
        await _word(services, waiting.id, "chat:bot:ann")
        played.append(
            Played("a yes said twice", "after it was taken", await _word(services, waiting.id, "chat:bot:ann"))
        )
        await talk.recover()
        played.append(Played("a changed plan after a yes", "pay more", world.done != ["pay"]))
        (second,) = services.store.read(lambda connection: open_under(connection, KEY, now=0))
        played.append(Played("a changed plan after a yes", "the same question", second.id == waiting.id))
        played.append(Played("a yes said twice", "to the old name", await _word(services, waiting.id, "chat:bot:ann")))
        await talk.recover()
        played.append(Played("a changed plan after a yes", "nobody said yes to it", world.done != ["pay"]))
    return played


async def _word(services: object, name: str, who: str) -> bool:
    """Whether a yes of `who` was taken."""
    try:
        await decide(services, name, Reply("once"), who=who)  # type: ignore[arg-type]
    except LimpetError:
        return False
    return True


def consent(folder: Path) -> list[Played]:
    return [*shown(), *asyncio.run(decided(folder))]
