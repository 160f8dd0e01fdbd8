"""A full terminal: everything that is drawn, asked and typed there, put together. Loaded only where there is one."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial

from prompt_toolkit import PromptSession

from limpet.assistant.commands import COMMANDS
from limpet.assistant.services import Services
from limpet.cli.chat_ask import ScreenApprovals
from limpet.cli.chat_changes import changed, proposed
from limpet.cli.chat_complete import ChatCompleter
from limpet.cli.chat_files import Files
from limpet.cli.chat_keys import listening
from limpet.cli.chat_orders import ORDERS, names
from limpet.cli.chat_prompt import prompt_session
from limpet.cli.chat_screen import Screen
from limpet.cli.chat_view import ChatView
from limpet.cli.talk import Talk
from limpet.session import branch


class Full:
    """The screen of one process, whatever conversation is on it."""

    def __init__(self) -> None:
        self.view = ChatView(Screen(sys.stdout))
        self.approvals = ScreenApprovals(self.view)

    def attend(self, services: Services, key: str) -> None:
        """From here on show what calls of the conversation under `key` change."""
        self.view.changed = partial(changed, services, key)
        self.approvals.proposed = partial(proposed, services)

    @contextmanager
    def working(self) -> Generator[None]:
        """Inside, a turn may run: keys are listened to, and nothing is left drawn."""
        try:
            with listening(self.view.unfold):
                yield
        finally:
            self.view.rest()

    def prompt(self, talk: Talk, history: str) -> PromptSession[str]:
        """The prompt of a conversation."""
        values = {
            "sessions": lambda: names(talk),
            "rewind": lambda: [(label, "label") for label in branch.labels(talk.conversation.log().entries)],
            "skill": lambda: _skills(talk),
        }
        completer = ChatCompleter(lambda: _commands(talk), values, Files(os.getcwd(), talk.services.workspace))
        return prompt_session(history, completer, toolbar=lambda: self.view.standing, unfold=self.view.unfold)


def _commands(talk: Talk) -> Sequence[tuple[str, str]]:
    """All that can stand behind a slash, with its help: ours, those of every door, and those of skills."""
    own = {name: order.summary for name, order in ORDERS.items()}
    common = {name: command.summary for name, command in COMMANDS.items()}
    skills = talk.services.skills
    called = {one.command: one.description for one in (skills.callable() if skills else ()) if one.command}
    return sorted({**called, **common, **own}.items())


def _skills(talk: Talk) -> Sequence[tuple[str, str]]:
    skills = talk.services.skills
    return [(one.name, one.description) for one in (skills.callable() if skills else ())]
