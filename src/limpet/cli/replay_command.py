"""`limpet replay` and `limpet eval`: recorded turns run again, and folders of them as a regression suite."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec
from msgspec import structs

from limpet.assistant.replay import Replayed, replay
from limpet.assistant.services import Services
from limpet.cli.door import Entrance, Nobody, opener
from limpet.cli.group import WORDS, Invocation
from limpet.cli.terminal import hand_over, say
from limpet.cli.view import TerminalView
from limpet.errors import InputError
from limpet.session.recording import Recording, from_json, pictures, recording_of, to_json
from limpet.store import entries, sessions, turns
from limpet.store.turns import TurnRow
from limpet.types.ports import Model

HELP = {"help_option_names": ["-h", "--help"]}
DIFFERENT = 1
"""Exit code when a replay came out otherwise than recorded."""


@click.command("replay", context_settings=HELP)
@click.argument("turn", type=WORDS, default="last")
@click.option(
    "--session", type=WORDS, default="main", metavar="NAME", help="Where `last` is looked for. Default: main."
)
@click.option("--model", type=WORDS, default="", metavar="PROVIDER/MODEL", help="Another model, not the record.")
@click.option("--texts/--calls", default=None, help="Compare words too, or calls only. Default: calls for a model.")
@click.option("--save", type=click.Path(path_type=Path, dir_okay=False), help="Write the record to a file instead.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
@click.pass_obj
def replay_command(
    invocation: Invocation,
    *,
    turn: str,
    session: str,
    model: str,
    texts: bool | None,
    save: Path | None,
    as_json: bool,
) -> int:
    """Run a recorded turn again: TURN is its id, a file made with --save, or `last`.

    Tools are answered from the record and nothing is done in the world. Prints how it differs; the exit code is 0 when
    it does not, 1 when it does.
    """
    return asyncio.run(_replay(invocation, (turn, session), model=model, texts=texts, save=save, as_json=as_json))


@click.command("eval", context_settings=HELP)
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--model", type=WORDS, default="", metavar="PROVIDER/MODEL", help="Another model in place of the records."
)
@click.option("--texts/--calls", default=None, help="Compare words too, or calls only. Default: calls for a model.")
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON for each.")
@click.pass_obj
def eval_command(invocation: Invocation, *, folder: Path, model: str, texts: bool | None, as_json: bool) -> int:
    """Replay every recorded turn (*.json, made with `limpet replay --save`) in FOLDER; 0 when all came out the same."""
    return asyncio.run(_eval(invocation, folder, model=model, texts=texts, as_json=as_json))


async def _replay(
    invocation: Invocation,
    what: tuple[str, str],
    *,
    model: str,
    texts: bool | None,
    save: Path | None,
    as_json: bool,
) -> int:
    async with opener(invocation)(invocation, _entrance()) as services:
        recording = _recording(services, *what)
        if save is not None:
            _save(services, recording, save)
            return 0
        other = await services.models.get(model) if model else None
        found = await replay(services, recording, model=other, texts=_texts(texts, other))
    if as_json:
        hand_over(_line(recording.turn, found))
    else:
        say("\n".join(_told(found)))
    return 0 if found.same else DIFFERENT


async def _eval(invocation: Invocation, folder: Path, *, model: str, texts: bool | None, as_json: bool) -> int:
    files = sorted(folder.glob("*.json"))
    if not files:
        raise InputError(f"{folder} holds no recorded turn.", hint="Make one: `limpet replay TURN --save FILE`.")
    different = 0
    async with opener(invocation)(invocation, _entrance()) as services:
        other = await services.models.get(model) if model else None
        for file in files:
            found = await replay(services, _read(file), model=other, texts=_texts(texts, other))
            different += not found.same
            if as_json:
                hand_over(_line(file.name, found))
            else:
                say(f"{'same     ' if found.same else 'different'}  {file.name}")
                say("\n".join(f"    {line}" for line in _told(found)) if not found.same else "", end="")
    if not as_json:
        say(f"{len(files) - different} of {len(files)} came out as recorded.")
    return DIFFERENT if different else 0


def _entrance() -> Entrance:
    view = TerminalView(sys.stdout, sys.stderr, live=False)
    return Entrance(emit=view.emit, approvals=Nobody(), announce=False)


def _texts(wanted: bool | None, model: Model | None) -> bool:
    """Another model says everything in other words: then, unless asked for, only what it does counts."""
    return model is None if wanted is None else wanted


def _recording(services: Services, turn: str, session: str) -> Recording:
    """The recorded turn that `turn` means: a file, an id, the beginning of one, or the last of `session`."""
    if turn.endswith(".json"):
        return _read(Path(turn))
    store = services.store
    if turn == "last":
        for key in (session, f"agent:{services.agent}:{session}", f"agent:{services.agent}:cli:{session}"):
            live = store.read(lambda connection, key=key: sessions.live(connection, key))
            if live and (newest := store.read(lambda connection, live=live: turns.newest(connection, live.id))):
                return _of_turn(services, newest)
        raise InputError(f"There is no turn in the conversation {session}.")
    found = store.read(lambda connection: turns.matching(connection, turn))
    if len(found) != 1:
        many = f"{len(found)} turns begin with {turn}" if found else f"There is no turn {turn}"
        raise InputError(f"{many}.", hint="Ids of turns: `limpet sessions export --format jsonl`, or say `last`.")
    return _of_turn(services, found[0])


def _of_turn(services: Services, turn: TurnRow) -> Recording:
    log = services.store.read(lambda connection: entries.load(connection, turn.session))
    row = services.store.read(lambda connection: sessions.find(connection, turn.session))
    return recording_of(log, turn.id, cache_key=row.cache_key if row else "")


def _read(file: Path) -> Recording:
    try:
        return from_json(file.read_bytes(), name=str(file))
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.") from None


def _save(services: Services, recording: Recording, file: Path) -> None:
    blobs: dict[str, bytes] = {}
    for name in pictures(recording.entries):
        try:
            blobs[name] = services.blobs.get(name)
        except FileNotFoundError:
            say(f"The picture {name[:12]} is gone; the record does without it.", error=True)
    try:
        file.write_bytes(to_json(structs.replace(recording, blobs=blobs)))
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}.") from None
    say(f"Written to {file}. It holds what was said: look through it before you give it away.")


def _told(found: Replayed) -> Sequence[str]:
    if found.same:
        return ["The same as recorded."]
    return [*found.difference, *([f"Failed: {found.error}"] if found.error else [])]


def _line(name: str, found: Replayed) -> str:
    line = {
        "name": name,
        "same": found.same,
        "difference": found.difference,
        "error": found.error,
        "usage": found.usage,
    }
    return msgspec.json.encode(line).decode() + "\n"
