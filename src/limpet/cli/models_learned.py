"""`limpet models learned`: what services have taught Limpet about their models, and a way to unlearn it."""

from __future__ import annotations

import time

import click

from limpet.cli.database import change
from limpet.cli.group import Invocation
from limpet.cli.sessions_command import reading
from limpet.cli.terminal import say
from limpet.errors import InputError
from limpet.store.learned import Lesson, forget, lessons


@click.command("learned", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--forget", "model", metavar="MODEL", default="", help="Forget it for provider/model: it is tried anew.")
@click.pass_obj
def learned(invocation: Invocation, model: str) -> None:
    """What services refused or revealed: fields of requests that are left out now, windows that are smaller."""
    with reading(invocation) as connection:
        found = lessons(connection) if connection else []
    if not model:
        for lesson in found:
            say(_line(lesson))
        if not found:
            say("Nothing was learned yet.")
        return
    provider, _, name = model.partition("/")
    if not any((lesson.provider, lesson.model) == (provider, name) for lesson in found):
        raise InputError(f"Nothing was learned of {model}.", hint="`limpet models learned` lists what was.")
    count = change(invocation.home(), lambda connection: forget(connection, provider, name))
    say(f"{count} forgotten. A process that runs already knows it until its end.")


def _line(lesson: Lesson) -> str:
    what = f"is asked without `{lesson.refused}`" if lesson.refused else f"has a window of {lesson.window:,} tokens"
    when = time.strftime("%Y-%m-%d", time.localtime(lesson.at / 1000))
    return f"{lesson.provider}/{lesson.model} {what} (since {when}): {lesson.reason}"
