"""What a turn keeps of the workspace before it changes it, so that it can be undone."""

from __future__ import annotations

from collections.abc import Sequence

from limpet.assistant.services import Services
from limpet.session.log import Log
from limpet.store.commits import TurnWriter
from limpet.types.entry import ToolStarted, UndoPoint
from limpet.types.event import Notice
from limpet.types.tool import Effect, FileIntent
from limpet.undo.keeper import Keeper, TurnName


class TurnUndo:
    """Keeps for one turn what its calls are about to change; does nothing where undo is off."""

    def __init__(self, services: Services, writer: TurnWriter, log: Log) -> None:
        self._keeper = services.undo
        self._emit = services.emit
        self._log = log
        self._turn = TurnName(writer.turn, writer.key, writer.lease.session)

    async def keep(self, effect: Effect, intent: FileIntent | None) -> UndoPoint | None:
        """Keep what a call is about to change; gives what is new to say of it."""
        if self._keeper is None:
            return None
        if effect != "file":
            point = await self._keeper.before_command(self._turn)
        else:
            point = await self._keep_files(self._keeper, intent.each) if intent is not None else None
        if point is not None and (point.refused or point.unkept) and not self._is_known(point):
            self._emit(Notice(_not_undoable(point), level="warning" if point.refused else "info"))
        return point

    async def _keep_files(self, keeper: Keeper, files: Sequence[FileIntent]) -> UndoPoint | None:
        """Keep each file; what is to be said of them together."""
        found = [await keeper.before_file(self._turn, one.path) for one in files]
        points = [point for point in found if point is not None]
        if not points:
            return None
        unkept = tuple(path for point in points for path in point.unkept)
        return UndoPoint(unkept=unkept, refused=next((point.refused for point in points if point.refused), ""))

    async def finish(self) -> None:
        """The turn changes nothing more: remember what it left behind."""
        if self._keeper is not None and self._has_acted():
            await self._keeper.finish(self._turn)

    def over(self) -> None:
        """The end of the turn is committed."""
        if self._keeper is not None:
            self._keeper.over(self._turn.turn)

    def _is_known(self, point: UndoPoint) -> bool:
        """Whether the newest turn before had to say the same."""
        for entry in reversed(self._log.entries):
            if isinstance(entry.payload, UndoPoint):
                return (entry.payload.refused, entry.payload.unkept) == (point.refused, point.unkept)
        return False

    def _has_acted(self) -> bool:
        """Whether a call of this turn was begun that may have changed something."""
        for entry in reversed(self._log.entries):
            if entry.turn != self._turn.turn:
                return False
            if isinstance(entry.payload, ToolStarted):
                return True
        return False


def _not_undoable(point: UndoPoint) -> str:
    if point.refused:
        return f"What this turn changes cannot be undone: {point.refused}."
    return f"Changes to these files could not be undone: {', '.join(point.unkept)}."
