"""Jobs: what there is, what comes, and what became of each slot."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from nicegui import ui

from limpet.errors import InputError
from limpet.schedule import desk as jobs_desk
from limpet.schedule.calendar import upcoming
from limpet.schedule.desk import Maker, Timing, Wish
from limpet.schedule.zones import local, shown, users_zone, zone_of
from limpet.store import jobs, occurrences
from limpet.store.sql import Connection
from limpet.types.job import Job, JobAct, JobRow, Occurrence
from limpet.webui import texts
from limpet.webui.desk import AGENT, Desk
from limpet.webui.parts import Pages, ask_first, heading, sheet, small_button, told
from limpet.webui.transcript import dollars

DAYS = 14
Act = Callable[[JobRow, JobAct], Awaitable[None]]


def show(desk: Desk) -> None:
    """All jobs, a form for a new one, the next two weeks, and the history."""

    async def act(row: JobRow, what: JobAct) -> None:
        async with told():
            await do(desk, row, what)
        body.refresh()

    async def add() -> None:
        async with told():
            await make(desk, str(text.value or ""), str(timing.value or ""), says=bool(says.value))
            text.set_value("")
        body.refresh()

    @ui.refreshable
    def body() -> None:
        rows = desk.store.read(jobs.listed)
        for row in rows:
            _job(row, act)
        if not rows:
            ui.label(texts.JOBS_NONE).classes("lp-dim")
        _calendar(desk, rows)
        heading(texts.JOBS_HISTORY)
        known = {row.job.id: row.job for row in rows}
        Pages(lambda skip, limit: _history(desk, skip, limit), lambda row: _was(row, known.get(row.job)))

    with sheet(texts.NAV["/schedule"][0]):
        with ui.element("div").classes("lp-row"):
            text = ui.input(texts.JOBS_TEXT).props("outlined dense").classes("lp-grow")
            timing = ui.input(texts.JOBS_WHEN).props("outlined dense").classes("lp-grow")
            says = ui.checkbox(texts.JOBS_SAYS)
            ui.button(texts.JOBS_ADD, on_click=add)
        body()  # pyright: ignore


def zone_here(desk: Desk) -> str:
    return users_zone(desk.agents.settings.user.timezone)


async def make(desk: Desk, text: str, timing: str, *, says: bool) -> Job:
    """A new job of the owner's. Raises `InputError`."""
    wish = Wish(text, Timing.of(timing), says=says)
    maker, now = Maker(AGENT, zone=zone_here(desk)), desk.clock.now()

    def work(connection: Connection) -> Job:
        made = jobs_desk.make(connection, wish, maker, now=now)
        jobs.apply(connection, made)
        if made.job is None:
            raise InputError("Nothing was made.")
        return made.job

    return await desk.store.write(work)


async def do(desk: Desk, row: JobRow, act: JobAct) -> None:
    """Pause, resume, run or remove a job. Raises `InputError`."""
    now = desk.clock.now()
    await desk.store.write(lambda connection: jobs.apply(connection, jobs_desk.change(row, act, now=now)))
    desk.nudges.send()


def _job(row: JobRow, act: Act) -> None:
    """One job with what can be done about it."""
    with ui.element("div").classes("lp-entry"):
        with ui.element("div").classes("lp-grow"):
            ui.label(row.job.name).classes("text-weight-bold")
            ui.label(jobs_desk.line(row)).classes("lp-dim lp-wrap")
            ui.label(row.job.text).classes("lp-wrap")
        rests = row.state in ("paused", "disabled")
        acts: tuple[JobAct, ...] = () if row.state == "over" else ("resume" if rests else "pause", "run")
        for one in acts:
            small_button(texts.JOB_ACTS[one], partial(act, row, one))
        small_button(
            texts.JOB_ACTS["remove"],
            lambda: ask_first(texts.JOBS_REMOVE_SURE.format(name=row.job.name), partial(act, row, "remove")),
        )


def _calendar(desk: Desk, rows: list[JobRow]) -> None:
    heading(texts.JOBS_CALENDAR.format(days=DAYS))
    zone = zone_here(desk)
    active = [row for row in rows if row.state == "active"]
    found = upcoming(active, zone=zone, now=desk.clock.now(), days=DAYS)
    if not found:
        ui.label(texts.NOTHING).classes("lp-dim")
    days: dict[str, list[str]] = {}
    for due in found:
        moment = local(due.at, zone_of(zone))
        times = texts.JOBS_TIMES.format(count=due.times) if due.times > 1 else ""
        days.setdefault(f"{moment:%a %d %b}", []).append(f"{moment:%H:%M} {due.name}{times}")
    with ui.element("div").classes("lp-calendar"):
        for day, lines in days.items():
            with ui.element("div").classes("lp-day"):
                ui.label(day).classes("text-weight-bold")
                for line in lines:
                    ui.label(line).classes("lp-wrap")


def _history(desk: Desk, skip: int, limit: int) -> list[Occurrence]:
    found = desk.store.read(lambda connection: occurrences.history(connection, limit=skip + limit))
    return found[skip:]


def _was(row: Occurrence, job: Job | None) -> None:
    zone = job.schedule.zone if job else "UTC"
    parts = [shown(row.due, zone), row.state, row.reason]
    parts += [texts.JOBS_SLOTS.format(count=row.count)] if row.count > 1 else []
    parts += [dollars(row.cost)] if row.cost else []
    with ui.element("div").classes("lp-entry"):
        ui.label(job.name if job else row.job).classes("text-weight-bold")
        ui.label(" · ".join(part for part in parts if part)).classes("lp-dim lp-wrap")
