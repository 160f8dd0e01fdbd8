"""`limpet gateway`: the process that is always there, with all channels, until it is told to stop."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeGuard

import click

from limpet.cli.group import Invocation, load
from limpet.cli.terminal import say
from limpet.gateway.gateway import Gateway

READY = "The gateway is ready ({channels}). Ctrl-C or SIGTERM ends it in good order."
ENDING = "Ending: turns are finished or put aside, messages delivered. Once more ends at once; nothing is lost."


class GatewayOpener(Protocol):
    """Builds the gateway of a home and ends it again; provided by `household`."""

    def __call__(self, invocation: Invocation) -> AbstractAsyncContextManager[Gateway]: ...


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--once", is_flag=True, help="Do what there is to do, deliver it, and end.")
@click.pass_obj
def gateway(invocation: Invocation, *, once: bool) -> None:
    """Connect the agents with your chats, run what is due, and see to it that answers arrive.

    One for each home. It goes on where it was, also after a crash; settings of channels and agents that are changed
    while it runs are used at once. Other commands work beside it.
    """
    found = load(invocation.gateway)
    if not _is_opener(found):
        raise TypeError(f"{invocation.gateway} opens no gateway")
    if asyncio.run(_run(invocation, found, once=once)):
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


async def _run(invocation: Invocation, opener: GatewayOpener, *, once: bool) -> bool:
    """Whether it is to begin anew."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop, stop, number)
    async with opener(invocation) as opened:
        names = ", ".join(":".join(name) for name in opened.wanted) or "no channel is configured"
        say(READY.format(channels=names), error=True)
        await opened.run(stop, once=once)
        return opened.restarting.is_set() and not stop.is_set()


def _stop(stop: asyncio.Event, number: int) -> None:
    """The first signal asks; the second ends the process as if it had been killed, which loses nothing either."""
    if stop.is_set():
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
    stop.set()
    say(ENDING, error=True)


def _is_opener(value: object) -> TypeGuard[GatewayOpener]:
    return callable(value)
