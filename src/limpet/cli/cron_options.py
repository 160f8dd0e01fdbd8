"""What `limpet cron add` and `edit` can be told besides what a job does."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

import click
from msgspec import Struct, structs

from limpet.cli.group import WORDS
from limpet.errors import InputError
from limpet.schedule.desk import Timing, Wish
from limpet.schedule.when import HOW_EVERY, span
from limpet.types.job import CatchUp, Conduct, Delivery, Overlap

C = TypeVar("C", bound=Callable[..., object])
CATCH_UP: tuple[CatchUp, ...] = ("skip", "once", "all")
OVERLAP: tuple[Overlap, ...] = ("skip", "queue")


class Given(Struct, frozen=True):
    """The options as they were given; empty and None: not given."""

    at: str
    every: str
    cron: str
    zone: str
    to: str
    deliver: str | None
    model: str
    tools: tuple[str, ...]
    allow: tuple[str, ...]
    dollars: float
    catch_up: str | None
    overlap: str | None
    grace: str
    timeout: str
    stagger: str
    retries: int | None

    @property
    def timing(self) -> Timing:
        return Timing(self.at, self.every, self.cron, self.zone)

    @property
    def is_timed(self) -> bool:
        return bool(self.at or self.every or self.cron)

    def wish(self, before: Conduct = Conduct()) -> Wish:  # noqa: B008 (frozen)
        """What is wished, over what was in force `before`."""
        conduct = structs.replace(
            before,
            catch_up=next((one for one in CATCH_UP if one == self.catch_up), before.catch_up),
            overlap=next((one for one in OVERLAP if one == self.overlap), before.overlap),
            grace=_span(self.grace) or before.grace,
            timeout=_span(self.timeout) or before.timeout,
            stagger=_span(self.stagger) or before.stagger,
            retries=before.retries if self.retries is None else self.retries,
        )
        deliver: Delivery | None = "none" if self.deliver == "none" else "last" if self.deliver == "last" else None
        return Wish(
            text="",
            timing=self.timing,
            delivery=deliver,
            model=self.model,
            tools=self.tools,
            grants=self.allow,
            dollars=self.dollars,
            conduct=conduct,
        )


def _span(text: str) -> int:
    if not text:
        return 0
    if not (found := span(text)):
        raise InputError(f"{text!r} is no span of time.", hint=HOW_EVERY)
    return found


OPTIONS = (
    click.option("--at", type=WORDS, default="", help="Once: `2026-12-01 10:00`, `in 20 minutes`, `tomorrow 7:30`."),
    click.option("--every", type=WORDS, default="", help="Again and again from now on: `30m`, `2h`, `1d`."),
    click.option("--cron", type=WORDS, default="", help="Five fields: `30 8 * * 1-5`."),
    click.option("--zone", type=WORDS, default="", help="Time zone, such as Europe/Lisbon; else yours."),
    click.option("--to", type=WORDS, default="", help="Who gets its answers: a name, `channel:chat`, `webhook:NAME`."),
    click.option("--deliver", type=click.Choice(["last", "none"]), help="Or your newest chat, or nobody."),
    click.option("--model", type=WORDS, default="", help="provider/model; else that of the purpose `cron`."),
    click.option("--tool", "tools", type=WORDS, multiple=True, help="Only these tools (patterns)."),
    click.option("--allow", type=WORDS, multiple=True, help="Tools (patterns) that need no approval in its runs."),
    click.option("--dollars", type=click.FloatRange(min=0), default=0.0, help="What one run may cost at the most."),
    click.option("--catch-up", type=click.Choice(CATCH_UP), help="Missed slots: none, one run, one run for each."),
    click.option("--overlap", type=click.Choice(OVERLAP), help="While an earlier run goes on: leave out, or wait."),
    click.option("--grace", type=WORDS, default="", help="How late a run may begin; 6 h."),
    click.option("--timeout", type=WORDS, default="", help="How long a run may take; 30 min."),
    click.option("--stagger", type=WORDS, default="", help="Put off by up to so much, always the same."),
    click.option("--retries", type=click.IntRange(0, 20), help="Further attempts of a failed run; 3."),
)


def given_options(command: C) -> C:
    """Adds the options, handed to the command as one `Given` after the invocation."""
    names = Given.__struct_fields__

    @wraps(command)
    def wrapped(*arguments: object, **options: object) -> object:
        given = Given(**{name: options.pop(name) for name in names})  # pyright: ignore[reportArgumentType]
        return command(*arguments, given, **options)

    found: Callable[..., object] = wrapped
    for option in reversed(OPTIONS):
        found = option(found)
    return found  # pyright: ignore[reportReturnType]
