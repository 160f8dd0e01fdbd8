"""A process whose turn applies one patch to many files, killed at a step: `patch_child.py HOME KILL_AT`.

Steps are commits and changes of the file system. A run with 0 does all that is left to do.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from limpet.assistant.conversation import Conversation
from limpet.store.driver import StoreSettings
from limpet.testing.scripted import Answer, ScriptedModel, call
from limpet.tools.files_patch import apply_patch
from limpet.types.message import Request, ToolMessage
from tests.assistant.room import KEY, home, said
from tests.crash.child import Steps
from tests.crash.undo_child import WATCHED

PATCH = """*** Begin Patch
*** Update File: a.txt
-a
+A
*** Update File: folder/b.txt
*** Move to: folder/deep/c.txt
-b
+B
*** Delete File: gone.txt
*** Add File: new.txt
+new
*** End Patch"""


def model(request: Request) -> Answer | str:
    """Asks for the patch, once."""
    done = any(isinstance(message, ToolMessage) for message in request.messages)
    return "done" if done else Answer(calls=(call("apply_patch", {"patch": PATCH}),))


def prepare(place: Path) -> None:
    (place / "folder").mkdir(parents=True)
    for name, text in (("a.txt", "a\n"), ("folder/b.txt", "b\n"), ("gone.txt", "gone\n")):
        (place / name).write_text(text)


async def main(folder: Path, kill_at: int, *lines: str) -> None:
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
    async with home(folder, scripted, tools=(apply_patch,), undo=True, store=settings) as (services, _):
        conversation = Conversation(services, KEY)
        await conversation.recover()
        await conversation.send(said("go", event="m0"))
        for line in lines:
            await conversation.send(said(line))
    print(steps.count)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]))
