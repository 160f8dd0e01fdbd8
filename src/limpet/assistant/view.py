"""The view of a turn: the next request, computed from the log and kept within the model's window."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from limpet.assistant.reduce import Place, Reducer
from limpet.assistant.services import Services
from limpet.errors import LimpetError
from limpet.session.log import Log
from limpet.session.rhythm import rhythm_of
from limpet.store import commits
from limpet.types.message import Request, Sampling, ToolChoice
from limpet.types.ports import Model, PendingCall
from limpet.types.usage import Usage


def next_request(log: Log, *, key: str, session: str, sampling: Sampling, tool_choice: ToolChoice = "auto") -> Request:
    """The request that the log of the conversation under `key` gives, as it stands."""
    prompt = log.prompt
    if prompt is None:
        raise LimpetError(f"The log of session {session} holds no prompt.")
    return Request(
        session=session,
        system=prompt.system,
        tools=prompt.tools,
        messages=log.messages(),
        tool_choice=tool_choice,
        sampling=sampling,
        rhythm=rhythm_of(key, log.pauses),
        cache_key=log.cache_key,
    )


class Asking(Struct, frozen=True):
    """How the model is asked. `tool_choice` is the owner's: where it forbids tools, no request allows them."""

    sampling: Sampling
    tool_choice: ToolChoice = "auto"


class SessionView:
    """Implements the `View` port over a session's log."""

    def __init__(
        self,
        services: Services,
        log: Log,
        place: Place,
        *,
        model: Model,
        asking: Asking,
        spend: Callable[[Usage], None],
        asked: Callable[[Request], None] = lambda request: None,
    ) -> None:
        """`spend` is told what requests beside the conversation used, `asked` is given each request."""
        self._services = services
        self._place = place
        self._log = log
        self._session = place.lease.session
        self._asking = asking
        self._asked = asked
        self._reducer = Reducer(services, log, place, model=model, build=self._build, spend=spend)

    async def request(self, *, tool_choice: ToolChoice = "auto") -> Request:
        await self._tell_folders()
        await self._reducer.before_request()
        request = self._build(tool_choice)
        self._asked(request)
        return request

    async def _tell_folders(self) -> None:
        """Log what folders say of themselves that the agent has begun to work in."""
        log, services, place = self._log, self._services, self._place
        notes = services.prompting.folders(log.seen, log.told)
        if notes:
            writing = commits.Addition(lease=place.lease, turn=place.turn, leaf=log.leaf, trust="tool")
            now = services.clock.now()
            log.extend(await services.store.write(lambda connection: commits.add(connection, writing, notes, now=now)))

    async def overflowed(self, limit: int) -> bool:
        return await self._reducer.overflowed(limit)

    def pending(self) -> tuple[PendingCall, ...]:
        return self._log.pending()

    def _build(self, tool_choice: ToolChoice = "auto") -> Request:
        choice: ToolChoice = "none" if "none" in (tool_choice, self._asking.tool_choice) else "auto"
        return next_request(
            self._log,
            key=self._place.key,
            session=self._session,
            sampling=self._asking.sampling,
            tool_choice=choice,
        )
