"""Asking the owner on the terminal whether exactly this may be done, or what the agent wants to know."""

from __future__ import annotations

import sys

from limpet.cli.terminal import printable, say, wrapped
from limpet.errors import TurnStopped
from limpet.types.approval import Approval, Reply, Wanted, Word

WORDS: dict[str, Word] = {"y": "once", "yes": "once", "a": "always", "always": "always"}


class TerminalApprovals:
    """Implements the port `Asker`: a question on the terminal. Ctrl-D leaves it open, Ctrl-C stops the turn."""

    can_ask = True

    async def ask(self, approval: Approval) -> Reply | None:
        from prompt_toolkit import PromptSession  # 0.3 s, only when there is something to ask

        wanted = approval.wanted
        say(f"\n{_shown(wanted)}", error=True)
        session: PromptSession[str] = PromptSession()
        try:
            while True:
                # Its own handler of SIGINT would take ours away.
                typed = await session.prompt_async(_prompt(wanted), handle_sigint=False)
                if reply := reply_of(wanted, printable(typed).strip()):
                    return reply
        except EOFError:
            return None
        except KeyboardInterrupt:
            raise TurnStopped("Stopped.") from None


def reply_of(wanted: Wanted, typed: str) -> Reply | None:
    """What was typed; None when it is no answer. To a call anything but yes is no."""
    if wanted.kind == "call":
        return Reply(WORDS.get(typed.lower(), "deny"))
    if typed.isdecimal() and 0 < int(typed) <= len(wanted.choices):
        return Reply("answer", wanted.choices[int(typed) - 1])
    if not typed or (wanted.only_choices and typed not in wanted.choices):
        return None
    return Reply("answer", typed)


def _shown(wanted: Wanted) -> str:
    if wanted.kind == "question":
        choices = [wrapped(f"{number}. {choice}", indent="  ") for number, choice in enumerate(wanted.choices, 1)]
        return "\n".join([wrapped(wanted.plan), *choices])
    who = wrapped(f"{wanted.tool} wants to run:")
    return "\n".join([who, wrapped(wanted.plan, indent="  "), wrapped(f"({wanted.reason})")])


def _prompt(wanted: Wanted) -> str:
    if wanted.kind == "question":
        return "Your answer (Ctrl-D: later): "
    return "Allow it? [y/N], a: always exactly this, Ctrl-D: later "


def can_ask() -> bool:
    """Whether there is a person at both ends."""
    return sys.stdin.isatty() and sys.stderr.isatty()
