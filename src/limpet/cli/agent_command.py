"""`limpet agent`: one turn. Prints the reply; the exit code tells how it went."""

from __future__ import annotations

import asyncio
import sys

import click
import msgspec

from limpet.assistant.tidying import tidy
from limpet.cli.ask import TerminalApprovals, can_ask
from limpet.cli.door import Entrance, Nobody, opener
from limpet.cli.group import WORDS, Invocation
from limpet.cli.logs import without_secrets
from limpet.cli.message import attach, piped_in
from limpet.cli.talk import Show, Talk
from limpet.cli.terminal import hand_over
from limpet.cli.view import JsonView, TerminalView
from limpet.errors import LimpetError
from limpet.types.envelope import OutboxRow
from limpet.types.ports import Emit


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("files", nargs=-1, metavar="[@FILE]...")
@click.option("-m", "--message", type=WORDS, default="", help="What to say. Text piped in is added to it.")
@click.option(
    "--session", type=WORDS, default="main", metavar="NAME", help="Which conversation it belongs to. Default: main."
)
@click.option("--model", type=WORDS, default="", metavar="PROVIDER/MODEL", help="The model for this turn.")
@click.option("--agent", "agent_id", type=WORDS, default="main", metavar="ID", help="Which agent. Default: main.")
@click.option("--json", "as_json", is_flag=True, help="Print every event as a line of JSON.")
@click.pass_obj
def agent(
    invocation: Invocation,
    files: tuple[str, ...],
    *,
    message: str,
    session: str,
    model: str,
    agent_id: str,
    as_json: bool,
) -> int:
    """Say something, print the answer. @FILE attaches a text, picture, recording or document.

    Exit codes: 0 done, 2 nothing to work with, 3 the model failed, 4 the database failed, 130 stopped.
    """
    piped = piped_in(needed=not message.strip() and not files)
    said = (message, piped, session)
    try:
        return asyncio.run(_agent(invocation, files, said, model=model, agent=agent_id, json=as_json))
    except LimpetError as error:
        if as_json:  # before or beside any turn: programs are told as people are
            line = {"event": "error", "error": type(error).__name__, "text": error.present(), "code": error.exit_code}
            hand_over(without_secrets(msgspec.json.encode(line).decode()) + "\n")
        raise


async def _agent(
    invocation: Invocation,
    files: tuple[str, ...],
    said: tuple[str, str, str],
    *,
    model: str,
    agent: str,
    json: bool,
) -> int:
    message, piped, session = said
    emit, show = _json_door() if json else _plain_door()
    approvals = TerminalApprovals() if can_ask() and not json else Nobody()
    entrance = Entrance(emit=emit, approvals=approvals, model=model, agent=agent, conversation=False)
    async with opener(invocation)(invocation, entrance) as services:
        talk = Talk(services, session, show, model=model)
        with talk.interruptible():
            await talk.check_model()
            attached = await attach(message, files, piped=piped, blobs=services.blobs, transcriber=services.studio)
            async with talk.helped():
                await talk.catch_up()
                code = await talk.say(attached.text, images=attached.images)
                code = code or await talk.finish()
            await tidy(services, talk.conversation.key)
            return code


def _plain_door() -> tuple[Emit, Show]:
    view = TerminalView(sys.stdout, sys.stderr, live=False)
    return view.emit, view.reply


def _json_door() -> tuple[Emit, Show]:
    def show(row: OutboxRow) -> None:
        line = {"event": row.kind, "text": row.text, "turn": row.turn}
        hand_over(msgspec.json.encode(line).decode() + "\n")

    return JsonView().emit, show
