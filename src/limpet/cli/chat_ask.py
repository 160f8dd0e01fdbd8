"""Approvals inside a conversation at a full terminal: the exact plan, what it would change, and one key."""

from __future__ import annotations

from collections.abc import Callable

from limpet.cli import chat_render as render
from limpet.cli.ask import reply_of
from limpet.cli.chat_pick import pick
from limpet.cli.chat_view import ChatView
from limpet.cli.terminal import printable
from limpet.errors import TurnStopped
from limpet.types.approval import Approval, Reply, Wanted, Word

WORDS: tuple[Word, ...] = ("once", "always", "deny")
ROWS = ("y  yes, this once", "a  yes, always exactly this", "n  no")
KEYS = {"y": 0, "a": 1, "n": 2}
OWN_WORDS = "something else …"


class ScreenApprovals:
    """Implements the port `Asker`. Ctrl-D or Esc leaves it open, Ctrl-C stops the turn, Enter is no."""

    can_ask = True

    def __init__(self, view: ChatView) -> None:
        self._view = view
        self.proposed: Callable[[Approval], str] = lambda approval: ""

    async def ask(self, approval: Approval) -> Reply | None:
        wanted = approval.wanted
        with self._view.aside():
            try:
                return await (self._allow(approval) if wanted.kind == "call" else self._answer(wanted))
            except EOFError:
                return None
            except KeyboardInterrupt:
                raise TurnStopped("Stopped.") from None

    async def _allow(self, approval: Approval) -> Reply | None:
        wanted = approval.wanted
        self._view.show(render.block(f"\n{wanted.tool} wants to run:", "bold"))
        self._view.show(render.block(wanted.plan, "yellow", indent=2))
        self._view.show(render.block(f"({wanted.reason})"))
        if proposed := self.proposed(approval):
            self._view.show(render.diff(proposed))
        chosen = await pick("Allow it? (Ctrl-D: later)", ROWS, keys=KEYS, start=KEYS["n"])
        if chosen is None:
            return None
        self._view.note(f"{ROWS[chosen][3:]}.")
        return Reply(WORDS[chosen])

    async def _answer(self, wanted: Wanted) -> Reply | None:
        self._view.show(render.block(f"\n{wanted.plan}", "bold"))
        if wanted.choices:
            rows = [*wanted.choices, *(() if wanted.only_choices else (OWN_WORDS,))]
            chosen = await pick("Your answer (Ctrl-D: later)", rows)
            if chosen is None or chosen < len(wanted.choices):
                return None if chosen is None else Reply("answer", wanted.choices[chosen])
        return await self._typed(wanted)

    async def _typed(self, wanted: Wanted) -> Reply:
        from prompt_toolkit import PromptSession  # rare: questions without choices

        session: PromptSession[str] = PromptSession()
        while True:
            typed = await session.prompt_async("Your answer (Ctrl-D: later): ", handle_sigint=False)
            if reply := reply_of(wanted, printable(typed).strip()):
                return reply
