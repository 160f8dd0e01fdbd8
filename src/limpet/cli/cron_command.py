"""`limpet cron`: jobs, the ledger of what they did, and a calendar of what comes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

import click
import msgspec
from msgspec import structs

from limpet.assistant.addresses import named
from limpet.cli.cron_options import Given, given_options
from limpet.cli.database import change
from limpet.cli.group import WORDS, Invocation
from limpet.cli.moments import now_ms
from limpet.cli.sessions_find import reading
from limpet.cli.terminal import hand_over, pairs, say
from limpet.config.agents import agent_names
from limpet.config.paths import prepare_home
from limpet.errors import InputError
from limpet.schedule import desk
from limpet.schedule.calendar import upcoming
from limpet.schedule.desk import Maker
from limpet.schedule.ledger import ago
from limpet.schedule.zones import local, shown, users_zone, zone_of
from limpet.store import jobs, occurrences
from limpet.store.sql import Connection
from limpet.types.envelope import Address
from limpet.types.job import Job, JobAct, JobChange, JobRow, Occurrence

STALE = "The gateway has to run for it: `limpet gateway`."


@click.group("cron", context_settings={"help_option_names": ["-h", "--help"]})
def cron() -> None:
    """Jobs: what is done by itself, and when. They run while the gateway does."""


@cron.command("list")
@click.option("--all", "every", is_flag=True, help="Those that are over, too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@click.pass_obj
def list_command(invocation: Invocation, *, every: bool, as_json: bool) -> None:
    """All jobs, the next one first."""
    with reading(invocation) as connection:
        rows = jobs.listed(connection, over=every) if connection else []
    if as_json:
        for row in rows:
            hand_over(msgspec.json.encode(row).decode() + "\n")
    else:
        say(pairs((row.job.name, desk.line(row)) for row in rows) or "There are no jobs.")


@cron.command()
@click.argument("text", type=WORDS)
@click.option("--name", type=WORDS, default="", help="What to call it; else its first words.")
@click.option("--agent", default="main", show_default=True, help="Who does it.")
@click.option("--says", is_flag=True, help="TEXT is delivered word for word, and no model is asked: a reminder.")
@click.option("--main", "main", is_flag=True, help="In the main session, instead of one of its own for each run.")
@given_options
@click.pass_obj
def add(invocation: Invocation, given: Given, *, text: str, name: str, agent: str, says: bool, main: bool) -> None:
    """Make a job that does TEXT."""
    settings = invocation.settings().settings
    if agent not in agent_names(settings):
        raise InputError(f"There is no agent {agent!r}.", hint=f"There are: {', '.join(agent_names(settings))}.")
    _check_model(invocation, given.model)
    targets = tuple(settings.webhooks.targets)
    maker, now = Maker(agent, zone=users_zone(settings.user.timezone)), now_ms()
    wish = structs.replace(given.wish(), text=text, name=name, says=says, where="main" if main else "isolated")

    def work(connection: Connection) -> JobChange:
        to = _address(connection, given.to, targets)
        made = desk.make(connection, structs.replace(wish, address=to), maker, now=now)
        jobs.apply(connection, made)
        return made

    prepare_home(invocation.home())
    made = change(invocation.home(), work)
    assert made.job is not None
    say(f"{desk.confirmation(made.job, now=now)}\n{STALE}")


@cron.command()
@click.argument("name", type=WORDS)
@click.option("--text", type=WORDS, default="", help="What it does.")
@given_options
@click.pass_obj
def edit(invocation: Invocation, given: Given, *, name: str, text: str) -> None:
    """Change what is given of the job NAME; it is active afterwards."""
    _check_model(invocation, given.model)
    settings = invocation.settings().settings
    zone, now, targets = users_zone(settings.user.timezone), now_ms(), tuple(settings.webhooks.targets)

    def work(connection: Connection) -> Job:
        row = desk.the_one(connection, name)
        wish = structs.replace(given.wish(row.job.conduct), text=text, address=_address(connection, given.to, targets))
        made = desk.edited(row, wish, given.timing if given.is_timed else None, zone=zone, now=now)
        jobs.apply(connection, made)
        assert made.job is not None
        return made.job

    say(desk.confirmation(_changed(invocation, work), now=now))


def _check_model(invocation: Invocation, reference: str) -> None:
    """Raises `ConfigError` or `NoModelError` for a model that no run could have."""
    if reference:
        from limpet.cli.models_command import check_model  # heavy, and only needed here

        check_model(invocation, reference)


def _address(connection: Connection, to: str, targets: Collection[str]) -> Address | None:
    return named(connection, to, targets=targets) if to else None


def _changed(invocation: Invocation, work: Callable[[Connection], Job]) -> Job:
    if not invocation.home().database.exists():
        raise InputError("There are no jobs.")
    return change(invocation.home(), work)


def _act(connection: Connection, name: str, act: JobAct) -> Job:
    row = desk.the_one(connection, name)
    jobs.apply(connection, desk.change(row, act, now=now_ms()))
    return row.job


@cron.command()
@click.argument("name", type=WORDS)
@click.pass_obj
def remove(invocation: Invocation, *, name: str) -> None:
    """Remove a job; what it did stays in the history."""
    say(f"{_changed(invocation, partial(_act, name=name, act='remove')).name} is removed.")


@cron.command()
@click.argument("name", type=WORDS)
@click.pass_obj
def pause(invocation: Invocation, *, name: str) -> None:
    """Have a job rest until it is resumed."""
    say(f"{_changed(invocation, partial(_act, name=name, act='pause')).name} is paused.")


@cron.command()
@click.argument("name", type=WORDS)
@click.pass_obj
def resume(invocation: Invocation, *, name: str) -> None:
    """Have a job go on that is paused or was switched off."""
    say(desk.confirmation(_changed(invocation, partial(_act, name=name, act="resume")), now=now_ms()))


@cron.command()
@click.argument("name", type=WORDS)
@click.pass_obj
def run(invocation: Invocation, *, name: str) -> None:
    """Run a job now, besides its schedule."""
    say(f"{_changed(invocation, partial(_act, name=name, act='run')).name} runs now. {STALE}")


@cron.command()
@click.argument("name", type=WORDS, default="")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="The newest so many.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@click.pass_obj
def history(invocation: Invocation, *, name: str, limit: int, as_json: bool) -> None:
    """What became of each slot, of all jobs or of NAME, newest first, with what it cost."""
    with reading(invocation) as connection:
        known = {row.job.id: row.job for row in jobs.listed(connection)} if connection else {}
        job = desk.the_one(connection, name).job.id if connection and name else ""
        rows = occurrences.history(connection, job=job, limit=limit) if connection else []
    if as_json:
        for row in rows:
            hand_over(msgspec.json.encode(row).decode() + "\n")
    else:
        say("\n".join(_was(row, known.get(row.job)) for row in rows) or "Nothing was due yet.")


@cron.command("next")
@click.option("--days", type=click.IntRange(1, 366), default=7, show_default=True, help="So many days ahead.")
@click.pass_obj
def next_command(invocation: Invocation, *, days: int) -> None:
    """A calendar of what comes, day by day."""
    zone, now = users_zone(invocation.settings().settings.user.timezone), now_ms()
    with reading(invocation) as connection:
        rows = [row for row in jobs.listed(connection, over=False) if row.state == "active"] if connection else []
    say(calendar(rows, zone=zone, now=now, days=days) or f"Nothing is due in the next {days} days.")


def calendar(rows: list[JobRow], *, zone: str, now: int, days: int) -> str:
    """The slots of `rows` in the next days, by day; of a job that is due all the time the first, and how many."""
    lines: list[str] = []
    day = ""
    for due in upcoming(rows, zone=zone, now=now, days=days):
        moment = local(due.at, zone_of(zone))
        if (this := f"{moment:%a %Y-%m-%d}") != day:
            lines.append(this)
            day = this
        lines.append(f"  {moment:%H:%M}  {due.name}" + (f" ({due.times} times)" if due.times > 1 else ""))
    return "\n".join(lines)


def _was(row: Occurrence, job: Job | None) -> str:
    zone = job.schedule.zone if job else "UTC"
    late = f", {ago(row.begun - row.due)}" if row.begun - row.due >= 60_000 else ""
    cost = f", ${row.cost / 1e6:.4f}" if row.cost else ""
    tries = f", attempt {row.attempt}" if row.attempt > 1 else ""
    several = f" {row.count} slots up to {shown(row.upto, zone)}" if row.count > 1 else ""
    why = f": {row.reason}" if row.reason else ""
    by_hand = ", by hand" if row.manual else ""
    name = job.name if job else f"{row.job} (removed)"
    return f"{shown(row.due, zone)}  {name}  {row.state}{several}{late}{tries}{by_hand}{cost}{why}"
