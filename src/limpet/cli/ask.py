"""Asking the owner on the terminal whether exactly this may be done."""

from __future__ import annotations

import sys

from limpet.cli.terminal import printable, say


class TerminalApprovals:
    """Implements the `Approvals` port: a question on the terminal, one at a time; anything but yes is no."""

    async def ask(self, *, tool: str, plan: str, reason: str) -> bool:
        from prompt_toolkit import PromptSession  # 0.3 s, only when there is something to ask

        say(f"\n{tool} wants to run:\n  {plan}\n({reason})", error=True)
        session: PromptSession[str] = PromptSession()
        try:
            answer = await session.prompt_async("Allow it this once? [y/N] ")
        except (EOFError, KeyboardInterrupt):
            return False
        return printable(answer).strip().lower() in ("y", "yes")


def can_ask() -> bool:
    """Whether there is a person at both ends."""
    return sys.stdin.isatty() and sys.stderr.isatty()
