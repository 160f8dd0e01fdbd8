"""`limpet models update`: a newer catalog of windows and prices, from a file or an address."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import click
import msgspec

from limpet.cli.group import WORDS, Invocation
from limpet.cli.models_list import told
from limpet.cli.terminal import pairs, say
from limpet.config.paths import prepare_home
from limpet.config.write import write_atomically
from limpet.errors import InputError
from limpet.llm.catalog import FETCHED, SHIPPED, Book, read_book
from limpet.llm.catalog_update import FORMS, Change, changes, load, read

SHOWN = 30
"""Changes that are printed one by one."""


@click.command("update", short_help="Take windows and prices from a file or an address.")
@click.argument("source", type=WORDS, default="")
@click.pass_obj
def update(invocation: Invocation, source: str) -> None:
    """Take windows, limits, modalities and prices of models from SOURCE, a file or an http(s) address.

    SOURCE holds a catalog in Limpet's own form, `api.json` of models.dev, or LiteLLM's
    `model_prices_and_context_window.json`. What cannot be read changes nothing.
    """
    if not source.strip():
        raise InputError(
            "Say where the catalog is: a file or an address.",
            hint=f"limpet models update https://models.dev/api.json. It takes {FORMS}.",
        )
    home, own = invocation.home(), invocation.settings().settings.providers
    path = home.root / FETCHED
    today = datetime.now(UTC).date().isoformat()
    new = read(asyncio.run(load(source)), source=source, today=today, further={name: name for name in own})
    before = _before(str(path))
    prepare_home(home)
    write_atomically(path, msgspec.json.format(msgspec.json.encode(new)).decode())
    count = sum(map(len, new.models.values()))
    say(f"{count} models of {len(new.models)} providers, from {new.source} ({new.date}), are in {path}.")
    _report(changes(before or _shipped(), new, removed=before is not None))


def _before(path: str) -> Book | None:
    try:
        return read_book(path)
    except msgspec.DecodeError:
        say(f"{path} was damaged and is replaced.", error=True)
        return None


def _shipped() -> Book:
    return read_book(SHIPPED) or Book(date="", source="", models={})


def _report(found: list[Change]) -> None:
    counts = {sign: sum(change.sign == sign for change in found) for sign in "+~-"}
    say(f"{counts['+']} added, {counts['~']} changed, {counts['-']} removed.")
    shown = sorted(found, key=lambda change: "~-+".index(change.sign))[:SHOWN]
    if shown:
        say(pairs((f"{change.sign} {change.reference}", told(change.facts)) for change in shown))
    if len(found) > len(shown):
        say(f"… and {len(found) - len(shown)} more.")
