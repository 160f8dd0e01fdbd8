"""`limpet service`: the gateway as a service of the user, kept running by systemd or launchd."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from limpet.cli.group import Invocation
from limpet.cli.service import Service, service_name
from limpet.cli.service_run import Launchd, Manager, Systemd, hardens, is_ours, missing, replace_with
from limpet.cli.terminal import hand_over, say, wrapped
from limpet.config.agents import agent_names, settings_of
from limpet.config.load import OTHER_VARIABLES
from limpet.config.machine import this_machine
from limpet.config.paths import Home, find_workspace, own_folder, prepare_home
from limpet.config.secrets import VARIABLE_ENDINGS
from limpet.config.write import write_atomically
from limpet.errors import InputError
from limpet.gateway.status import living


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def service() -> None:
    """Keep the gateway running: a unit of your systemd, an agent of your launchd. No root is needed."""


@service.command()
@click.option("--print", "only_print", is_flag=True, help="Print what would be written, and do nothing.")
@click.option(
    "--writable", multiple=True, type=click.Path(path_type=Path), help="A further folder that it may write to."
)
@click.option("--no-mounts", is_flag=True, help="Without the hardening that needs user namespaces.")
@click.pass_obj
def install(invocation: Invocation, *, only_print: bool, writable: tuple[Path, ...], no_mounts: bool) -> None:
    """Have the gateway run now and at each login, and again when it ends. Running it again brings it up to date."""
    home = invocation.home()
    wanted = described(invocation, home, writable)
    if only_print:
        hand_over(_manager(home, mounts=not no_mounts).text(wanted))
        return
    if fault := missing(os.environ):
        raise fault
    prepare_home(home)
    manager = _manager(home, mounts=not no_mounts)
    if isinstance(manager, Systemd) and not no_mounts and not hardens(home.root):
        say("Hardening by mounts does not work here together with the sandbox of commands: left out.", error=True)
        manager = _manager(home, mounts=False)
    if not is_ours(manager.file):
        raise InputError(f"{manager.file} is not ours.", hint="Move it away, or use another LIMPET_HOME.")
    write_atomically(manager.file, manager.text(wanted))
    notes = manager.start()
    say(f"{wanted.name} is installed and runs ({manager.file}).")
    for note in (*notes, *_unseen_keys(), "How it is: limpet service status; limpet service logs; limpet status"):
        say(wrapped(note))


@service.command()
@click.pass_obj
def status(invocation: Invocation) -> int:
    """Whether it is installed and runs. Exit code 1 when it does not."""
    home = invocation.home()
    manager = _manager(home)
    if not manager.file.exists():
        say("not installed (`limpet service install` does)")
        return 1
    alive = living(str(home.run))
    say(f"service: {manager.state()} ({manager.file})")
    say(f"gateway: {'running; `limpet status` says more' if alive else 'does not run; `limpet service logs` says why'}")
    return 0 if alive else 1


@service.command()
@click.option("-n", "--lines", default=50, show_default=True, type=click.IntRange(1), help="How many of the last.")
@click.option("-f", "--follow", is_flag=True, help="Go on with what comes.")
@click.pass_obj
def logs(invocation: Invocation, *, lines: int, follow: bool) -> None:
    """What it printed. Warnings of Limpet itself are in logs/limpet.log as well."""
    manager = _installed(invocation.home())
    replace_with(manager.logs(lines, follow=follow))


@service.command()
@click.pass_obj
def restart(invocation: Invocation) -> None:
    """End it in good order and start it again."""
    _installed(invocation.home()).restart()
    say("Restarted.")


@service.command()
@click.pass_obj
def uninstall(invocation: Invocation) -> None:
    """End it and take the file away. Everything in the home stays."""
    manager = _installed(invocation.home())
    manager.stop()
    manager.file.unlink()
    manager.forget()
    say(f"It does not run any more, and {manager.file} is gone. {invocation.home().root} was not touched.")


def described(invocation: Invocation, home: Home, more: tuple[Path, ...] = ()) -> Service:
    """The service of a home, with what this environment says of where things are, and no keys."""
    settings = invocation.settings().settings
    agents = (settings_of(settings, agent).agent.workspace for agent in agent_names(settings))
    folders = [home.root, home.config.parent, *(find_workspace(one, home) for one in agents)]
    folders += [path.absolute() for path in more]
    given = {name: os.environ[name] for name in (*OTHER_VARIABLES, "PATH", "LANG", "TZ") if os.environ.get(name)}
    if "LIMPET_HOME" in given:
        given["LIMPET_HOME"] = str(home.root)
    if home.config != home.root / "config.toml":
        given["LIMPET_CONFIG"] = str(home.config)
    return Service(
        name=service_name(home.root, Path(own_folder(os.environ))),
        program=(sys.executable, "-m", "limpet", "gateway"),
        environ=given,
        writable=tuple(path for path in dict.fromkeys(folders) if not _below_another(path, folders)),
        logs=home.logs,
    )


def _below_another(path: Path, folders: list[Path]) -> bool:
    return any(path != other and path.is_relative_to(other) for other in folders)


def _manager(home: Home, *, mounts: bool = True) -> Manager:
    own = Path(own_folder(os.environ))
    name = service_name(home.root, own)
    if this_machine(os.environ).system == "macOS":
        return Launchd(name, own=own, log=home.logs / "gateway.log")
    config = os.environ.get("XDG_CONFIG_HOME", "")
    return Systemd(name, config=Path(config) if os.path.isabs(config) else own / ".config", mounts=mounts)


def _installed(home: Home) -> Manager:
    manager = _manager(home)
    if not manager.file.exists():
        raise InputError("The service is not installed.", hint="limpet service install")
    if fault := missing(os.environ):
        raise fault
    return manager


def _unseen_keys() -> list[str]:
    """A service does not see what a shell exports."""
    names = sorted(name for name, value in os.environ.items() if value and name.upper().endswith(VARIABLE_ENDINGS))
    if not names:
        return []
    shown = ", ".join(names[:6])
    return [f"The service does not see {shown} of this terminal: keep keys with `limpet secrets set` and name them."]
