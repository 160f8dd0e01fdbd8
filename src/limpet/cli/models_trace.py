"""`limpet models trace`: the raw request and the raw answer of failed requests, secrets out."""

from __future__ import annotations

import time

import click
import msgspec

from limpet.cli.database import change
from limpet.cli.group import Invocation
from limpet.cli.sessions_command import reading
from limpet.cli.terminal import hand_over, say
from limpet.errors import InputError
from limpet.store import traces
from limpet.store.sql import Connection
from limpet.store.traces import Failure
from limpet.types.trace import Trace


@click.command("trace", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("which", default="")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: a line for each failure, or the whole trace.")
@click.option("--clear", is_flag=True, help="Forget all traces.")
@click.pass_obj
def trace(invocation: Invocation, *, which: str, as_json: bool, clear: bool) -> None:
    """The newest failed requests to models; with WHICH (a number or `last`) one of them as it went over the wire.

    Keys and known secrets are left out, long bodies are shortened in the middle, the newest 50 are kept.
    """
    if clear:
        home = invocation.home()
        say(f"{change(home, traces.clear) if home.database.exists() else 0} traces forgotten.")
        return
    with reading(invocation) as connection:
        failures = traces.recent(connection) if connection else []
        found = _find(connection, failures, which) if which else None
    if found is not None:
        hand_over(msgspec.json.encode(found).decode() + "\n" if as_json else shown(found))
    elif as_json:
        for failure in failures:
            fields = {name: getattr(failure, name) for name in failure.__struct_fields__}
            hand_over(msgspec.json.encode(fields).decode() + "\n")
    elif failures:
        for failure in failures:
            say(_line(failure))
        say("\n`limpet models trace NUMBER` shows one.")
    else:
        say("No request to a model has failed.")


def shown(found: Trace) -> str:
    """A trace for people: what was sent, what came back, and what was made of it."""
    answered = f"{found.status}" if found.status else "no answer"
    return "\n".join(
        [
            f"{found.provider}/{found.model}, session {found.session or '-'}",
            found.reason,
            "",
            f"> POST {found.url}",
            *(f"> {name}: {value}" for name, value in found.headers.items()),
            "",
            found.request.text,
            "",
            f"< {answered}",
            *(f"< {name}: {value}" for name, value in found.answer_headers.items()),
            "",
            found.answer.text,
            "",
        ]
    )


def _find(connection: Connection | None, failures: list[Failure], which: str) -> Trace:
    number = failures[0].number if which == "last" and failures else int(which) if which.isdecimal() else 0
    found = traces.load(connection, number) if connection is not None else None
    if found is None:
        raise InputError(f"There is no trace {which}.", hint="`limpet models trace` lists them.")
    return found


def _line(failure: Failure) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(failure.at / 1000))
    reason = failure.reason.partition("\n")[0][:160]
    return f"{failure.number:>4}  {when}  {failure.provider}/{failure.model}  {failure.status or '-'}  {reason}"
