"""Commands. Importing this costs nothing: `click` and the commands are loaded when one is called."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from limpet import __version__

COMMANDS: Mapping[str, tuple[str, str]] = {
    "config": ("limpet.cli.config_command:config", "Read and change settings."),
    "secrets": ("limpet.cli.secrets_command:secrets", "Keep keys and passwords encrypted; the settings name them."),
    "doctor": ("limpet.cli.doctor_command:doctor", "Look for what is wrong, and say what to do about it."),
    "onboard": ("limpet.cli.onboard:onboard", "Set up workspace, model and first chat app; may be run again."),
}
"""Name of a command to (`module:function`, what it does in a line). `app` adds those that need the whole assistant."""


def run(
    arguments: Sequence[str] | None = None,
    *,
    commands: Mapping[str, tuple[str, str]] = COMMANDS,
    checks: Sequence[str] = (),
    opener: str = "",
    gateway: str = "",
) -> int:
    """Run the command that `arguments` (by default those of the process) name; gives the exit code.

    `opener` names (`module:function`) what opens the assistant, see `cli.door`; `gateway` what opens the gateway.
    `checks` names (`module:function`) what `limpet doctor` looks at beside its own; see `cli.doctor.Check`.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given in (["--version"], ["-V"]):
        print(f"limpet {__version__}")
        return 0
    from limpet.cli.group import execute  # imports click, which --version must not pay for

    return execute(given, commands=commands, checks=tuple(checks), opener=opener, gateway=gateway)
