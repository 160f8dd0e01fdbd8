"""`limpet media`: recordings to text, text to recordings, descriptions to pictures."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import click

from limpet.cli.door import Entrance, Nobody, opener
from limpet.cli.group import WORDS, Invocation
from limpet.cli.message import RECORDING_LIMIT, as_text, read_file
from limpet.cli.terminal import say
from limpet.cli.view import TerminalView
from limpet.errors import InputError
from limpet.llm.media.studio import Studio
from limpet.types.ports import Media

Work = Callable[[Studio], Awaitable[None]]


@click.group("media", context_settings={"help_option_names": ["-h", "--help"]})
def media() -> None:
    """Sound and pictures, with the models that models.purposes names."""


@media.command()
@click.argument("file")
@click.pass_obj
def transcribe(invocation: Invocation, file: str) -> None:
    """Print what is said in the recording FILE."""

    async def work(studio: Studio) -> None:
        path = Path(file).expanduser()
        text = await studio.transcribe(read_file(path, limit=RECORDING_LIMIT), name=path.name)
        say(text or f"Nothing is said in {path.name}.", error=not text)

    _run(invocation, work)


@media.command()
@click.argument("text", type=WORDS)
@click.option("-o", "--output", required=True, metavar="FILE", help="Where the recording goes; its ending is the form.")
@click.pass_obj
def speak(invocation: Invocation, text: str, output: str) -> None:
    """Speak TEXT into a recording. `-` reads the text from standard input."""

    async def work(studio: Studio) -> None:
        words = as_text(sys.stdin.buffer.read(), "standard input") if text == "-" else text
        ending = Path(output).suffix.lower().lstrip(".")
        _write(output, await studio.speak(words, format={"ogg": "opus"}.get(ending, ending)))

    _run(invocation, work)


@media.command()
@click.argument("prompt", type=WORDS)
@click.option("-o", "--output", required=True, metavar="FILE", help="Where the picture goes.")
@click.option("--size", default="", metavar="WIDTHxHEIGHT", help="Its size; otherwise as set.")
@click.pass_obj
def image(invocation: Invocation, prompt: str, *, output: str, size: str) -> None:
    """Make a picture of what PROMPT describes."""

    async def work(studio: Studio) -> None:
        _write(output, await studio.make_image(prompt, size=size))

    _run(invocation, work)


def _run(invocation: Invocation, work: Work) -> None:
    async def inside() -> None:
        view = TerminalView(sys.stdout, sys.stderr, live=False)
        entrance = Entrance(emit=view.emit, approvals=Nobody(), conversation=False)
        async with opener(invocation)(invocation, entrance) as services:
            await work(services.studio)

    asyncio.run(inside())


def _write(output: str, made: Media) -> None:
    path = Path(output).expanduser()
    try:
        path.write_bytes(made.data)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}.") from None
    say(f"{path}: {made.mime}, {len(made.data):,} bytes")
