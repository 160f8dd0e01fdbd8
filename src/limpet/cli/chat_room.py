"""A conversation at this terminal: what is said, what goes with it, where the person goes next."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from limpet.cli.logs import without_secrets
from limpet.cli.message import attach
from limpet.cli.talk import Talk
from limpet.cli.terminal import say
from limpet.errors import LimpetError, StoreError

if TYPE_CHECKING:
    from limpet.cli.chat_full import Full


class Room:
    """`full` is the screen of a terminal that can do more than print lines.

    `drafts` stand at the next prompt, `kept` are outputs of commands that go with the next message, `goto` is the name
    of the conversation to change to.
    """

    def __init__(self, talk: Talk, full: Full | None = None) -> None:
        self.talk = talk
        self.full = full
        self.drafts: list[str] = []
        self.kept: list[str] = []
        self.goto = ""

    async def say(self, text: str, files: list[str] | None = None) -> int:
        """Say something with its files; gives the exit code."""
        return await self._working(lambda: self._say(text, files or []))

    async def hear(self) -> int:
        """Answer the results of helpers; gives the exit code."""
        return await self._working(self.talk.hear) if self.talk.helping.results else 0

    async def finish(self) -> int:
        """See helpers to their end; gives the exit code."""
        return await self._working(self.talk.finish)

    async def stand(self) -> None:
        """Learn how the conversation stands, for the line below the prompt."""
        if self.full is None:
            return
        from limpet.cli.chat_status import standing  # only where it is shown

        with suppress(LimpetError):
            self.full.view.standing = await standing(self.talk.conversation)

    async def _say(self, text: str, files: list[str]) -> int:
        kept, self.kept = ([], self.kept) if text.startswith("/") else (self.kept, [])
        text = "\n\n".join([text, *kept])
        if not files:
            return await self.talk.say(text)
        services = self.talk.services
        said = await attach(text, files, piped="", blobs=services.blobs, transcriber=services.studio)
        return await self.talk.say(said.text, images=said.images)

    async def _working(self, act: Callable[[], Awaitable[int]]) -> int:
        """Do it; what goes wrong is told, and the conversation goes on."""
        try:
            if self.full is None:
                return await act()
            with self.full.working():
                return await act()
        except StoreError:
            raise
        except LimpetError as error:
            say(without_secrets(error.present()), error=True)
            return error.exit_code
