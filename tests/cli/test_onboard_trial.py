"""`limpet onboard`: what it finds and tries, the first channel, and that nothing is half written."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from limpet.channels.trial import greet
from limpet.config.channels import DiscordSettings, SlackSettings
from limpet.config.load import load_settings
from limpet.config.vault import Vault
from limpet.errors import RefusedError
from limpet.testing.fakes.discord.server import FakeDiscord
from limpet.testing.fakes.openai import FakeOpenAI
from limpet.testing.fakes.script import Reply
from limpet.testing.fakes.slack.rooms import ME
from limpet.testing.fakes.slack.server import FakeSlack
from limpet.testing.fakes.telegram.server import FakeTelegram
from limpet.types.clock import SystemClock
from tests.cli.program import Ended, environment, limpet, run

OK = [Reply(text=("OK",))]


def written(home: Path) -> list[str]:
    """Files of the home, but for logs."""
    return sorted(path.name for path in home.rglob("*") if path.is_file() and path.parent.name != "logs")


def test_a_model_and_a_channel_are_tried_and_written(tmp_path: Path) -> None:
    home = tmp_path / "home"

    async def main() -> Ended:
        async with FakeOpenAI(OK) as model, FakeTelegram() as telegram:
            options = ["--yes", "--json", "--name", "Ada", "--timezone", "Europe/Lisbon", "--resets", "daily"]
            options += ["--provider", "lab", "--base-url", model.base_url, "--api-key", model.key, "--model", "gpt-5"]
            options += ["--channel", "telegram", "--token", telegram.token, "--owner", "11"]
            options += ["--set", f"base_url={telegram.base_url}"]
            return await limpet(home, "onboard", *options)

    done = asyncio.run(main())
    assert done.code == 0, done.err
    told = msgspec.json.decode(done.out)
    tried = {one["name"]: (one["state"], one["text"]) for one in told["found"] if one["name"] in ("lab", "telegram")}
    assert tried == {"lab": ("works", "lab/gpt-5 answers"), "telegram": ("works", "@helperbot")}
    settings = load_settings(home / "config.toml", {}).settings
    channel = settings.channels.telegram["main"]
    assert (channel.token, channel.owners) == ("secret:telegram", ("11",))
    assert Vault(home).value("telegram") == FakeTelegram.token
    assert (settings.sessions.reset.daily, settings.agent.model) == (4, "lab/gpt-5")
    text = (home / "config.toml").read_text()
    assert FakeTelegram.token not in text + done.out + done.err
    assert "# a reference; the secret itself is not in this file" in text


def test_a_key_that_is_refused_writes_nothing(tmp_path: Path) -> None:
    async def main() -> Ended:
        async with FakeOpenAI(OK) as model:
            options = ["--yes", "--provider", "lab", "--base-url", model.base_url, "--api-key", "sk-wrong-key-here"]
            return await limpet(tmp_path / "home", "onboard", *options, "--model", "gpt-5")

    done = asyncio.run(main())
    assert done.code == 2
    assert "Nothing was written" in done.err
    assert not written(tmp_path / "home")


def test_a_key_that_is_not_there_writes_nothing(tmp_path: Path) -> None:
    options = ["--yes", "--provider", "openai", "--api-key", "env:NO_SUCH_KEY_ANYWHERE"]
    done = asyncio.run(limpet(tmp_path / "home", "onboard", *options))
    assert done.code == 2
    assert "needs a key" in done.err
    assert not written(tmp_path / "home")


def test_a_token_that_is_refused_writes_nothing(tmp_path: Path) -> None:
    async def main() -> Ended:
        async with FakeTelegram() as telegram:
            options = ["--yes", "--channel", "telegram", "--token", "7:wrong", "--set", f"base_url={telegram.base_url}"]
            return await limpet(tmp_path / "home", "onboard", *options)

    done = asyncio.run(main())
    assert done.code == 2, done.out
    assert not written(tmp_path / "home")


def test_without_a_network_the_answers_are_kept_and_it_is_said(tmp_path: Path) -> None:
    options = ["--yes", "--provider", "lab", "--base-url", "http://127.0.0.1:9/v1", "--model", "x"]
    done = run(tmp_path / "home", "onboard", *options)
    assert done.code == 0, done.err
    assert "found: lab" in done.out
    assert "127.0.0.1:9" in " ".join(done.out.split())
    assert load_settings(tmp_path / "home" / "config.toml", {}).settings.agent.model == "lab/x"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--token", "1:a"], "For which channel?"),
        (["--channel", "telegram"], "telegram needs its token"),
        (["--channel", "telegram", "--token", "1:a", "--owner", "ada"], "not a name"),
        (["--channel", "irc"], "irc needs settings"),
        (["--channel", "irc", "--set", "sever=x"], "no setting 'sever'"),
    ],
)
def test_an_answer_about_a_channel_that_will_not_do(tmp_path: Path, options: list[str], words: str) -> None:
    done = run(tmp_path / "home", "onboard", "--yes", "--no-test", *options)
    assert (done.code, words in done.err) == (2, True), done.err
    assert not written(tmp_path / "home")


def test_any_kind_of_channel_by_its_settings(tmp_path: Path) -> None:
    options = ["--channel", "irc", "--set", "server=irc.example.org", "--set", "join=#a,#b", "--set", "port=6667"]
    assert run(tmp_path, "onboard", "--yes", "--no-test", *options, "--token", "env:IRC_PASSWORD").code == 0
    found = load_settings(tmp_path / "config.toml", {}).settings.channels.irc["main"]
    assert (found.server, found.port, found.join) == ("irc.example.org", 6667, ("#a", "#b"))
    assert found.password == "env:IRC_PASSWORD"


def test_tokens_in_the_environment_are_found_and_named(tmp_path: Path) -> None:
    tokens = {"SLACK_BOT_TOKEN": "xoxb-in-the-environment", "SLACK_APP_TOKEN": "xapp-in-the-environment"}
    done = run(tmp_path, "onboard", "--yes", "--no-test", "--channel", "slack", **tokens)
    assert done.code == 0, done.err
    found = load_settings(tmp_path / "config.toml", {}).settings.channels.slack["main"]
    assert (found.bot_token, found.app_token) == ("env:SLACK_BOT_TOKEN", "env:SLACK_APP_TOKEN")
    assert "found: slack (env:SLACK_BOT_TOKEN, env:SLACK_APP_TOKEN)" in " ".join(done.out.split())


def test_a_stored_key_is_found(tmp_path: Path) -> None:
    Vault(tmp_path).put("openai", "sk-in-the-store")
    assert run(tmp_path, "onboard", "--yes", "--no-test", "--provider", "openai").code == 0
    assert load_settings(tmp_path / "config.toml", {}).settings.providers["openai"].api_key == "secret:openai"


def test_what_a_person_wrote_beside_a_setting_stays(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[user]\nname = "Ada"  # as in Lovelace\n')
    assert run(tmp_path, "onboard", "--yes", "--no-test", "--name", "Eve", "--resets", "off").code == 0
    assert '"Eve"  # as in Lovelace' in (tmp_path / "config.toml").read_text()


def test_other_platforms_are_greeted_with_their_own_requests() -> None:
    async def main() -> tuple[str, str]:
        async with FakeDiscord() as discord, FakeSlack() as slack:
            one = DiscordSettings(token=discord.token, base_url=discord.base_url)
            two = SlackSettings(bot_token=slack.bot_token, app_token=slack.app_token, base_url=slack.base_url)
            names = await greet(one, secret=str, clock=SystemClock()), await greet(two, secret=str, clock=SystemClock())
            with pytest.raises(RefusedError):
                await greet(msgspec.structs.replace(one, token="wrong"), secret=str, clock=SystemClock())
            return names

    assert asyncio.run(main()) == ("your bot", f"the bot {ME}")


def interrupted(process: subprocess.Popen[bytes]) -> int:
    """The exit code after Ctrl-C; pressed again, as people do, where the first came just before the read began."""
    for _ in range(10):
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(3)
    return process.wait(0)


def test_ctrl_c_at_a_question_leaves_nothing_behind(tmp_path: Path) -> None:
    import pty

    above, below = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "limpet", "onboard", "--no-test"],
        stdin=below,
        stdout=below,
        stderr=below,
        env=environment(tmp_path / "home"),
        start_new_session=True,
    )
    os.close(below)
    try:
        seen = b""
        while b"Your name" not in seen:
            seen += os.read(above, 4096)
        assert interrupted(process) == 130
    finally:
        process.kill()
        process.wait()
        os.close(above)
    assert not written(tmp_path / "home")
