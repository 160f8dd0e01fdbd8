"""`limpet onboard`: workspace, model and first channel in two minutes. Every answer is also an option."""

from __future__ import annotations

import sys

import click
from msgspec import Struct, convert

from limpet.channels.kinds import KINDS
from limpet.cli.group import WORDS, Invocation
from limpet.cli.onboard_ask import LATER, RESETS, Answers
from limpet.cli.onboard_channel import ChannelAnswers
from limpet.cli.onboard_run import Manner, carry_out
from limpet.errors import InputError


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--name", type=WORDS, default="", help="What the agent calls you.")
@click.option(
    "--timezone", type=WORDS, default="", help="Your time zone, such as Europe/Lisbon. Default: the system's."
)
@click.option(
    "--workspace", type=WORDS, default="", help="The folder the agent works in. Default: workspace in Limpet's home."
)
@click.option(
    "--provider",
    type=WORDS,
    default="",
    help="One that `limpet models list` names, or your own with --base-url; later: none yet.",
)
@click.option(
    "--api-key",
    type=WORDS,
    default="",
    help="The key, or better a reference to it: secret:NAME, env:NAME or file:PATH.",
)
@click.option("--base-url", type=WORDS, default="", help="Address of an OpenAI-compatible server, ending in /v1.")
@click.option("--model", type=WORDS, default="", help="The model's name at the provider. Default: Limpet chooses.")
@click.option(
    "--resets",
    type=click.Choice(tuple(RESETS)),
    default=None,
    help="When conversations begin anew by themselves: at 4 in the morning, after a day of silence, never (default).",
)
@click.option("--channel", type=click.Choice((*KINDS, LATER)), default=None, help="The first chat app to connect.")
@click.option("--account", type=WORDS, default="main", show_default=True, help="A name of yours for the account there.")
@click.option("--token", type=WORDS, default="", help="Its token or password, or better a reference to it.")
@click.option("--app-token", type=WORDS, default="", help="Slack's second token.")
@click.option("--set", "settings", type=WORDS, multiple=True, help="A further setting of the channel, as KEY=VALUE.")
@click.option("--owner", type=WORDS, default="", help="Your id there, which makes you the owner without a code.")
@click.option("--no-test", is_flag=True, help="Make no trial requests.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; asks nothing.")
@click.option("--yes", is_flag=True, help="Ask nothing: take options and defaults.")
@click.pass_obj
def onboard(invocation: Invocation, *, yes: bool, as_json: bool, no_test: bool, **options: object) -> int:
    """Set up workspace, model and first channel. Safe to run again: it changes what you answer and nothing else.

    What it finds (keys, local servers, tokens) is tried with one small request each. A key or token that is refused is
    an error, and then nothing is written. Exit code 2 for an answer that will not do.
    """
    manner = Manner(asks=not yes and not as_json and sys.stdin.isatty(), tries=not no_test, as_json=as_json)
    return carry_out(invocation, answers_of(convert(options, Options)), manner)


class Options(Struct, frozen=True):
    """The options as they were given."""

    name: str
    timezone: str
    workspace: str
    provider: str
    api_key: str
    base_url: str
    model: str
    resets: str | None
    channel: str | None
    account: str
    token: str
    app_token: str
    settings: tuple[str, ...]
    owner: str


def answers_of(options: Options) -> Answers:
    """The answers that the options give. Raises `InputError` for those of a channel that is not named."""
    channel = None
    if options.channel and options.channel != LATER:
        channel = ChannelAnswers(
            options.channel,
            account=options.account,
            token=options.token,
            app_token=options.app_token,
            owner=options.owner,
            settings=options.settings,
        )
    elif options.settings or options.token or options.app_token or options.owner:
        raise InputError("For which channel?", hint=f"--channel, one of: {', '.join(KINDS)}")
    return Answers(
        name=options.name,
        timezone=options.timezone,
        workspace=options.workspace,
        provider=options.provider,
        api_key=options.api_key,
        base_url=options.base_url,
        model=options.model,
        resets=options.resets or "",
        channel=channel,
    )
