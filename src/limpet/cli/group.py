"""The group of all commands: finds a command by name, imports it then, and turns errors into exit codes."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from collections.abc import Mapping, Sequence

import click
from msgspec import Struct, structs

from limpet import __version__
from limpet.cli.logs import prepare_logging, where_to_look, without_secrets
from limpet.cli.terminal import prepare_streams, readable, say
from limpet.config.load import Loaded, load_settings
from limpet.config.paths import Home, find_home
from limpet.errors import LimpetError

log = logging.getLogger(__name__)

STOPPED = 130


class Words(click.types.StringParamType):
    """A text, not a path: whatever bytes were typed, it can be stored and sent."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return readable(str(value))


WORDS = Words()


class Invocation(Struct, frozen=True):
    """What every command is given (`click.pass_obj`): the options before its name."""

    config: str = ""
    checks: tuple[str, ...] = ()
    opener: str = ""
    gateway: str = ""

    def home(self) -> Home:
        """Where everything lives. Raises `UserError`."""
        return find_home(os.environ, config=self.config)

    def read(self) -> Loaded:
        """The settings as they are now. Raises `ConfigError`."""
        return load_settings(self.home().config, os.environ)

    def settings(self) -> Loaded:
        """The settings, after their warnings were said on standard error. Raises `ConfigError`."""
        loaded = self.read()
        if not loaded.exists and (self.config or os.environ.get("LIMPET_CONFIG", "").strip()):
            say(f"warning: {loaded.path} does not exist: all defaults are in force", error=True)
        for warning in loaded.warnings:
            say(f"warning: {warning}", error=True)
        return loaded


class LazyGroup(click.Group):
    """A group that knows its commands by name and help, and imports one only when it is called."""

    def __init__(self, commands: Mapping[str, tuple[str, str]], *, callback: click.Command) -> None:
        super().__init__(
            name="limpet",
            params=callback.params,
            callback=callback.callback,
            help=callback.help,
            context_settings={"help_option_names": ["-h", "--help"]},
        )
        self._table = commands

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._table:
            return None
        found = load(self._table[cmd_name][0])
        if not isinstance(found, click.Command):
            raise TypeError(f"{self._table[cmd_name][0]} is no command")
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._table.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self._table and not args[0].startswith("-"):
            import difflib  # only for mistakes

            near = difflib.get_close_matches(args[0], list(self._table), n=1)
            also = f" Did you mean {near[0]}?" if near else f" There are: {', '.join(self._table)}."
            raise click.UsageError(f"No such command {args[0]!r}.{also}", ctx)
        return super().resolve_command(ctx, args)


def load(target: str) -> object:
    """The object that `module:name` stands for."""
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--config", metavar="PATH", default="", help="Read settings from PATH instead of ~/.limpet/config.toml.")
@click.option("--verbose", is_flag=True, help="Log to standard error. Warnings are kept in logs/limpet.log anyway.")
@click.version_option(__version__, "-V", "--version", prog_name="limpet", message="%(prog)s %(version)s")
@click.pass_context
def _limpet(context: click.Context, config: str, verbose: bool) -> None:
    """Limpet, a personal agent that lives on your own machine and never loses anything."""
    given = context.ensure_object(Invocation)
    context.obj = structs.replace(given, config=config)
    prepare_logging(context.obj.home(), os.environ, verbose=verbose)


def execute(
    arguments: Sequence[str],
    *,
    commands: Mapping[str, tuple[str, str]],
    checks: tuple[str, ...] = (),
    opener: str = "",
    gateway: str = "",
) -> int:
    """Run one command line; gives the exit code. Errors are told, never raised.

    A boundary: what nobody expected goes to the log with its traceback.
    """
    prepare_streams()
    group = LazyGroup(commands, callback=_limpet)
    try:
        # Not `group.main`: it would end the process by itself on a broken pipe.
        with group.make_context(
            "limpet", list(arguments) or ["--help"], obj=Invocation(checks=checks, opener=opener, gateway=gateway)
        ) as context:
            code: object = group.invoke(context)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.ClickException as error:
        error.show(sys.stderr)
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        say("Stopped.", error=True)
        return STOPPED
    except BrokenPipeError:
        # Whoever read our output has left (`limpet … | head`). Python would complain again at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except LimpetError as error:
        say(without_secrets(error.present()), error=True)
        return error.exit_code
    except Exception as error:
        log.exception("limpet failed")
        say(without_secrets(f"Limpet itself failed: {type(error).__name__}: {error}\n{where_to_look()}"), error=True)
        return LimpetError.exit_code
