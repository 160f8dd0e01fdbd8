"""Asking the owner on the terminal whether exactly this may be done."""

from __future__ import annotations

import asyncio
import signal
import sys

from limpet.cli.terminal import printable, say, wrapped


class TerminalApprovals:
    """Implements the `Approvals` port: a question on the terminal, one at a time; anything but yes is no.

    Ctrl-C is no as well, and stops the turn as it does anywhere else.
    """

    def __init__(self) -> None:
        self._one = asyncio.Lock()

    async def ask(self, *, tool: str, plan: str, reason: str) -> bool:
        async with self._one:
            return await self._ask(tool, plan, reason)

    async def _ask(self, tool: str, plan: str, reason: str) -> bool:
        from prompt_toolkit import PromptSession  # 0.3 s, only when there is something to ask

        say(f"\n{wrapped(f'{tool} wants to run:')}\n{wrapped(plan, indent='  ')}\n{wrapped(f'({reason})')}", error=True)
        session: PromptSession[str] = PromptSession()
        try:
            # Its own handler of SIGINT would take ours away.
            answer = await session.prompt_async("Allow it this once? [y/N] ", handle_sigint=False)
        except EOFError:
            return False
        except KeyboardInterrupt:
            signal.raise_signal(signal.SIGINT)
            return False
        return printable(answer).strip().lower() in ("y", "yes")


def can_ask() -> bool:
    """Whether there is a person at both ends."""
    return sys.stdin.isatty() and sys.stderr.isatty()
