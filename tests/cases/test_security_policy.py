"""Case C67: commands on a list, "always", a time out, and only the owner."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from limpet.assistant.approvals import decide
from limpet.assistant.conversation import Conversation
from limpet.config.schema import PolicySettings
from limpet.errors import InputError
from limpet.sandbox.run import Sandbox
from limpet.store.approvals import open_under
from limpet.testing.scripted import Answer, ScriptedModel, Step, call
from limpet.tools.danger import danger
from limpet.tools.exec import ExecSettings, make_exec
from limpet.tools.policy import BuiltinPolicy
from limpet.tools.rules import RulePolicy
from limpet.types.approval import Approval, Reply, Word
from limpet.types.envelope import Address, Inbound
from tests.assistant.room import KEY, Nobody, home, said
from tests.assistant.test_approvals import AskForActs, Stage, acts, state

SANDBOX = Sandbox(enabled=False)
"""None, so that every command that runs does so on this machine, in the workspace of the test."""
LIST = {"exec": {"mode": "list", "allow": ["echo", "git status"]}, "rules": [{"decision": "allow", "tool": "exec"}]}
HOSTILE = [
    "echo a && touch X",
    "echo a | sh",
    "echo a; touch X",
    "echo a\ntouch X",
    "echo $(touch X)",
    "echo `touch X`",
    "echo a > X",
    "env sh -c 'touch X'",
    "busybox sh -c 'touch X'",
    "git status --porcelain; touch X",
    "echo 'touch X' | sh",
    "echo a & touch X",
    'echo "$(touch X)"',
    "echo a &> X",
    "echo <(touch X)",
    "PATH=.:$PATH echo a",
    "ec\\\nho a",
    "git -c alias.status='!touch X' status",
    "echo a || touch X; echo b",
    "{ touch X; }",
    "f() { touch X; }; f",
    "if touch X; then echo a; fi",
    "cat <<EOF\n$(touch X)\nEOF",
    "$(echo touch) X",
]


class Person:
    can_ask = True

    def __init__(self, *words: Word | None) -> None:
        self.words = list(words)
        self.asked: list[str] = []

    async def ask(self, approval: Approval) -> Reply | None:
        self.asked.append(approval.wanted.plan)
        word = self.words.pop(0)
        return Reply(word) if word else None


def execute(folder: Path, commands: list[str], asker: object, settings: object = LIST) -> bool:
    """Have a model run `commands` one after the other; whether X exists afterwards."""
    script: list[Step] = [Answer(calls=(call("exec", {"command": command}),)) for command in commands]
    policy = RulePolicy(BuiltinPolicy(SANDBOX), msgspec.convert(settings, PolicySettings))

    async def main() -> None:
        tools = (make_exec(SANDBOX, ExecSettings()),)
        async with home(folder, ScriptedModel([*script, "done"]), tools=tools) as (services, _):
            services = replace(services, policy=policy, approvals=asker)
            await Conversation(services, KEY).send(said("go"))

    asyncio.run(main())
    return (folder / "X").exists()


@pytest.mark.parametrize("command", HOSTILE)
def test_c67_x_never_exists_without_approval(tmp_path: Path, command: str) -> None:
    assert not execute(tmp_path, [command], Nobody())


@pytest.mark.parametrize("command", HOSTILE)
def test_c67_each_of_them_is_asked_for(command: str) -> None:
    policy = RulePolicy(BuiltinPolicy(SANDBOX), msgspec.convert(LIST, PolicySettings))
    tool = make_exec(SANDBOX, ExecSettings())
    bound = tool.bind(json.dumps({"command": command}), workspace="/w")
    assert policy.decide(tool, bound).decision == "ask"


def test_c67_what_is_on_the_list_runs(tmp_path: Path) -> None:
    person = Person()
    execute(tmp_path, ["echo a", "git status --porcelain", "echo 'a; b' | echo c 2>&1"], person)
    assert person.asked == []


def test_c67_always_stores_the_exact_plan(tmp_path: Path) -> None:
    person = Person("always", "deny")
    assert not execute(tmp_path, ["bash -c whoami", "bash -c whoami", "bash -c 'touch X'"], person)
    assert [plan.partition("command=")[2] for plan in person.asked] == ['"bash -c whoami"', "\"bash -c 'touch X'\""]


def test_c67_yes_to_it_runs_it_once(tmp_path: Path) -> None:
    person = Person("once")
    assert execute(tmp_path, ["bash -c 'touch X'"], person)
    assert len(person.asked) == 1


@pytest.mark.parametrize("command", ["tool --format json", "rm -f one.txt", "python3 manage.py format"])
def test_c67_benign_ones_are_no_disk_wipe(command: str) -> None:
    assert danger(command) == ""


def test_c67_a_time_out_is_a_no_and_the_turn_ends_cleanly(tmp_path: Path) -> None:
    async def main() -> None:
        stage = Stage(tmp_path, [acts("X"), "all done"])
        await stage.visit(Person(None), "go")
        stage.clock.advance(3_601)
        assert await stage.visit(Nobody()) == ["all done"]
        assert stage.world.done == []
        assert await stage.read(state) == [("done", 1)]

    asyncio.run(main())


def test_c67_a_chat_decides_only_by_its_owner(tmp_path: Path) -> None:
    """What a button in a chat will call: the owner there may decide, nobody else."""
    here = Address("chat", account="bot", chat="1")

    async def main() -> None:
        stage = Stage(tmp_path, [acts("X"), "all done"])
        async with home(tmp_path, stage.model, tools=stage.world.tools()) as (services, _):
            services = replace(services, policy=AskForActs(), approvals=Person(None))
            conversation = Conversation(services, KEY)
            await conversation.send(Inbound(here, event="1", text="go", sender="ann"))
            (waiting,) = services.store.read(lambda connection: open_under(connection, KEY, now=0))
            with pytest.raises(InputError, match="Only the owner"):
                await decide(services, waiting.id, Reply("once"), who="chat:bot:mallory")
            await decide(services, waiting.id, Reply("once"), who="chat:bot:ann")
            await conversation.recover()
        assert stage.world.done == ["X"]

    asyncio.run(main())
