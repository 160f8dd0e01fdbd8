"""The view of a turn: the next request, computed from the log."""

from __future__ import annotations

from limpet.errors import LimpetError
from limpet.session.log import Log
from limpet.types.message import Request, Sampling, ToolChoice
from limpet.types.ports import PendingCall


class SessionView:
    """Implements the `View` port over a session's log."""

    def __init__(self, log: Log, *, session: str, sampling: Sampling, tool_choice: ToolChoice = "auto") -> None:
        """`tool_choice` is the owner's: where it forbids tools, no request allows them."""
        self._log = log
        self._session = session
        self._sampling = sampling
        self._tool_choice = tool_choice

    async def request(self, *, tool_choice: ToolChoice = "auto") -> Request:
        prompt = self._log.prompt
        if prompt is None:
            raise LimpetError(f"The log of session {self._session} holds no prompt.")
        return Request(
            session=self._session,
            system=prompt.system,
            tools=prompt.tools,
            messages=self._log.messages(),
            tool_choice="none" if "none" in (tool_choice, self._tool_choice) else "auto",
            sampling=self._sampling,
        )

    def pending(self) -> tuple[PendingCall, ...]:
        return self._log.pending()
