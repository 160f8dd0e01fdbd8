"""Commands in the background, as the conversation hears of them."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from limpet.assistant.conversation import Conversation
from limpet.assistant.services import Services
from limpet.sandbox.run import Sandbox
from limpet.store.processes import StoredProcesses
from limpet.testing.scripted import Answer, ScriptedModel, call
from limpet.tools.exec import ExecSettings, make_exec
from limpet.tools.process import make_process
from limpet.tools.processes import Processes
from limpet.types.approval import Approval, Reply
from tests.assistant.room import KEY, home, said
from tests.sandbox.test_run import gone, processes_with


@asynccontextmanager
async def place(folder: Path, model: ScriptedModel) -> AsyncGenerator[tuple[Services, Processes]]:
    """A home whose agent has both tools, on the host: what is tested here does not depend on the sandbox."""
    async with home(folder, model, undo=True) as (services, _), Sandbox(enabled=False) as sandbox:
        processes = Processes(sandbox, StoredProcesses(services.store, services.owner, services.clock))
        tools = (make_exec(sandbox, ExecSettings(), processes=processes), make_process(processes))
        await processes.end_lost()
        try:
            yield replace(services, tools=tools, commands=processes), processes
        finally:
            await processes.close()


def run(command: str) -> Answer:
    return Answer(calls=(call("exec", {"command": command, "wait": 0}),))


def use(action: str, **more: object) -> Answer:
    return Answer(calls=(call("process", {"action": action, "id": "p1", **more}),))


def heard(model: ScriptedModel) -> list[int]:
    """How often each request speaks of an ended command."""
    return [str(request.messages).count("[The background command p1") for request in model.requests]


def test_the_next_turn_hears_of_the_end_exactly_once(tmp_path: Path) -> None:
    async def main() -> None:
        model = ScriptedModel([run("echo result; exit 3"), "begun", "I see", "yes"])
        async with place(tmp_path, model) as (services, processes):
            talk = Conversation(services, KEY)
            await talk.send(said("go"))
            await asyncio.wait_for(processes.of(KEY)[0].gone.wait(), 20)
            await talk.send(said("and?"))
            await talk.send(said("really?"))
            assert heard(model) == [0, 0, 1, 1]  # the second time as a part of what went before
            told = str(model.requests[2].messages[-1])
            assert "(echo result; exit 3) ended with exit code 3 after" in told
            assert "result" not in told.partition(" ended with")[2]  # on the host, so it may be strangers' words
            assert model.requests[3].messages[: len(model.requests[2].messages)] == model.requests[2].messages

    asyncio.run(main())


def test_an_end_that_was_polled_is_not_told_again(tmp_path: Path) -> None:
    async def main() -> None:
        model = ScriptedModel([run("exit 3"), use("poll", wait=20), "it failed", "nothing new"])
        async with place(tmp_path, model) as (services, _):
            talk = Conversation(services, KEY)
            await talk.send(said("go"))
            assert "p1: ended with exit code 3" in str(model.requests[2].messages[-1])
            await talk.send(said("and?"))
            assert heard(model) == [0, 0, 0, 0]

    asyncio.run(main())


def test_stop_ends_the_commands_of_the_turn_and_not_those_before(tmp_path: Path) -> None:
    old, new = f"51{os.getpid()}1", f"51{os.getpid()}2"

    async def main() -> None:
        model = ScriptedModel([run(f"sleep {old}"), "begun", run(f"sleep {new}"), Answer(text="hm", hang=True), "ok"])
        async with place(tmp_path, model) as (services, processes):
            talk = Conversation(services, KEY)
            await talk.send(said("go"))
            running = asyncio.create_task(talk.send(said("more")))
            while len(model.requests) < 4:
                await asyncio.sleep(0.01)
            await talk.send(said("/stop"))
            await running
            assert gone(f"sleep\0{new}")
            assert [one.over for one in processes.of(KEY)] == [False, True]
            await talk.send(said("well?"))
            assert "p2 (sleep" in str(model.requests[-1].messages)

    asyncio.run(main())
    assert gone(f"sleep\0{old}")


def test_what_ends_with_the_agent_is_told_by_the_next(tmp_path: Path) -> None:
    async def main() -> None:
        async with place(tmp_path, ScriptedModel([run("sleep 60"), "begun"])) as (services, _):
            await Conversation(services, KEY).send(said("go"))
        model = ScriptedModel([use("poll"), "oh", "fine"])
        async with place(tmp_path, model) as (services, _):
            await Conversation(services, KEY).send(said("is it ready?"))
            assert "p1 (sleep 60) ended with the agent after" in str(model.requests[0].messages[-1])
            assert "p1 (sleep 60) ended with the agent after" in str(model.requests[1].messages[-1])

    asyncio.run(main())


def test_the_conversation_keeps_its_commands_after_new(tmp_path: Path) -> None:
    async def main() -> None:
        model = ScriptedModel([run("sleep 60"), "begun", use("kill"), "gone"], forever=True)
        async with place(tmp_path, model) as (services, processes):
            talk = Conversation(services, KEY)
            await talk.send(said("go"))
            await talk.send(said("/new"))
            await talk.send(said("end it"))
            assert processes.of(KEY)[0].over

    asyncio.run(main())


def test_writing_to_a_command_keeps_what_can_be_undone(tmp_path: Path) -> None:
    async def main() -> None:
        first = Answer(calls=(call("exec", {"command": "cat", "wait": 0, "input": True, "place": "sandbox"}),))
        model = ScriptedModel([first, "begun", use("write", text="x"), "said"])
        async with place(tmp_path, model) as (services, _):
            services = replace(services, approvals=Yes())
            talk = Conversation(services, KEY)
            await talk.send(said("go"))
            await talk.send(said("write"))
            kinds = [entry.payload.__class__.__name__ for entry in talk.log().entries]
            assert kinds.count("UndoPoint") == 2

    asyncio.run(main())


def test_a_command_whose_init_was_killed_is_ended_all_the_same(tmp_path: Path) -> None:
    mark = f"52{os.getpid()}3"

    async def main() -> None:
        model = ScriptedModel([run(f"sleep {mark}; true"), "begun", use("poll"), "gone"])
        async with place(tmp_path, model) as (services, processes):
            talk = Conversation(services, KEY)
            await talk.send(said("go"))
            one = processes.of(KEY)[0]
            while not processes_with(f"sleep\0{mark}"):
                await asyncio.sleep(0.01)
            os.kill(one.command.pid, signal.SIGKILL)
            await asyncio.wait_for(one.gone.wait(), 20)
            assert gone(f"sleep\0{mark}")
            await talk.send(said("and?"))
            assert "was killed from outside, after" in str(model.requests[3].messages[-1])

    asyncio.run(main())


class Yes:
    can_ask = True

    async def ask(self, approval: Approval) -> Reply:
        return Reply("once")
