"""`limpet context`: what the next request of a session holds."""

from __future__ import annotations

import asyncio
import sys

import click

from limpet.assistant import commands_look
from limpet.assistant.inspection import current_prompt
from limpet.cli.door import Entrance, Nobody, opener
from limpet.cli.group import WORDS, Invocation
from limpet.cli.talk import Talk
from limpet.cli.terminal import say
from limpet.cli.view import TerminalView


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--session", type=WORDS, default="main", metavar="NAME", help="Which conversation. Default: main.")
@click.option("--model", type=WORDS, default="", metavar="PROVIDER/MODEL", help="As this model would be told.")
@click.option("--text", is_flag=True, help="Print the sections themselves.")
@click.pass_obj
def context(invocation: Invocation, *, session: str, model: str, text: bool) -> int:
    """Print the sections of the prompt, the tools and the messages with their estimated tokens."""
    return asyncio.run(_context(invocation, session, model=model, text=text))


async def _context(invocation: Invocation, session: str, *, model: str, text: bool) -> int:
    view = TerminalView(sys.stdout, sys.stderr, live=False)
    entrance = Entrance(emit=view.emit, approvals=Nobody(), model=model, announce=False)
    async with opener(invocation)(invocation, entrance) as services:
        conversation = Talk(services, session, lambda row: None, model=model).conversation
        if text:
            prompt = await current_prompt(conversation)
            say(prompt.system)
        else:
            say(await commands_look.context(conversation))
    return 0
