"""A process that lets a turn change a workspace and takes it back, killed at a step: `undo_child.py HOME KILL_AT`.

Steps are commits and changes of the file system. A run with 0 does all that is left to do.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from limpet.assistant.conversation import Conversation
from limpet.store.driver import StoreSettings
from limpet.testing.scripted import Answer, ScriptedModel, call
from limpet.toolkit.schema import tool
from limpet.types.message import Request, ToolMessage
from limpet.types.ports import ToolContext
from limpet.types.tool import ToolResult, text_result
from tests.assistant.room import KEY, home, said
from tests.crash.child import Steps

WATCHED = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.symlink", "os.chmod"}
LINES = ("go", "/rollback", "/rollback yes")


def model(request: Request) -> Answer | str:
    """Asks for one command, once."""
    done = any(isinstance(message, ToolMessage) for message in request.messages)
    return "done" if done else Answer(calls=(call("wreck"),))


@tool(effect="unsafe")
async def wreck(context: ToolContext) -> ToolResult:
    """Change a lot. Run in a killed turn it does not run again."""
    place = Path(context.workspace)
    (place / "kept.txt").write_text("other")
    (place / "gone.txt").unlink()
    (place / "folder").rename(place / "moved")
    (place / "new").mkdir()
    (place / "new" / "file").write_text("new")
    (place / "kind").unlink()
    (place / "kind").mkdir()
    return text_result("wrecked")


def prepare(place: Path) -> None:
    (place / "folder" / "deep").mkdir(parents=True)
    (place / "folder" / "deep" / "file").write_text("deep")
    for name in ("kept.txt", "gone.txt", "kind"):
        (place / name).write_text(name)


async def main(folder: Path, kill_at: int) -> None:
    place = folder / "workspace"
    if not place.exists():
        prepare(place)
    steps = Steps(kill_at)

    def watch(event: str, arguments: object) -> None:
        if event in WATCHED:
            steps(event)

    sys.addaudithook(watch)
    scripted = ScriptedModel([model], forever=True)
    settings = StoreSettings(probe=steps)
    async with home(folder, scripted, tools=(wreck,), undo=True, store=settings) as (services, _):
        conversation = Conversation(services, KEY)
        await conversation.recover()
        for number, line in enumerate(LINES):
            await conversation.send(said(line, event=f"m{number}"))
        if kill_at == 0:  # what was killed between two lines is asked for again
            await conversation.send(said("/rollback", event="again"))
            await conversation.send(said("/rollback yes", event="yes again"))
    print(steps.count)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
