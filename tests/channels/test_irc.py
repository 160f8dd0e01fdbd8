"""Beside the contract: what is IRC's own. What ngircd has not (accounts, tags) is played by a few lines."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from socket import AF_INET

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from limpet.channels.irc.channel import IrcChannel
from limpet.channels.irc.line import LONGEST, folded, parse, unstyled, written
from limpet.channels.irc.session import Patience
from limpet.channels.kinds import Means
from limpet.config.channels import IrcSettings
from limpet.errors import ChannelError, ConfigError, NotAcceptedError, RefusedError
from limpet.testing.clock import FakeClock
from limpet.types.envelope import Address
from tests.channel.harness import RecordingDesk, piece, running
from tests.channel.irc import GROUP, IrcHarness

Scene = Callable[[IrcHarness, IrcChannel, RecordingDesk], Awaitable[None]]


def play(folder: Path, scene: Scene, *, desk: RecordingDesk | None = None, **changes: object) -> None:
    """The scene with ngircd and a channel at work on it."""

    async def whole() -> None:
        async with IrcHarness(folder) as harness:
            channel = harness.make(msgspec.structs.replace(harness.settings(), **changes))
            stage = desk or RecordingDesk()
            async with running(channel, stage):
                await scene(harness, channel, stage)

    asyncio.run(whole())


@given(st.text(), st.text(alphabet=st.characters(exclude_categories=("Zs", "Cc", "Cs")), min_size=1))
def test_nothing_that_is_said_ends_its_line(text: str, target: str) -> None:
    data = written("PRIVMSG", target, text)
    assert data.count(b"\n") == data.count(b"\r") == 1
    assert b"\0" not in data


def test_a_line_with_tags_is_taken_apart() -> None:
    line = parse(b"@account=ann;x=a\\:b\\sc\\\\;y :ann!a@h PRIVMSG #x :two words :)\r\n")
    assert line.tags == {"account": "ann", "x": "a;b c\\", "y": ""}
    assert (line.nick, line.command, line.params) == ("ann", "PRIVMSG", ("#x", "two words :)"))


def test_text_of_old_clients_is_read_as_latin_1() -> None:
    assert parse(b":a!b@c PRIVMSG limpet :caf\xe9\r\n").param(1) == "café"


def test_colours_and_styles_are_taken_off() -> None:
    assert unstyled("\x02bold\x02 \x0304,12red\x0f \x04ff0000rgb plain") == "bold red rgb plain"


def test_no_two_people_of_any_server_are_folded_into_one() -> None:
    assert folded("Ann") == "ann"
    assert folded("ann[") != folded("ann{")
    assert folded("\u212a") != "k"  # the Kelvin sign


def test_without_a_server_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"channels\.irc\.main\.server"):
        IrcChannel("main", IrcSettings(), Means(FakeClock(), str(tmp_path), str, str))


def test_a_wrong_password_of_the_server_is_a_refusal_that_does_not_tell_it(tmp_path: Path) -> None:
    async def scene() -> None:
        async with IrcHarness(tmp_path) as harness:
            means = Means(FakeClock(), str(tmp_path), lambda _: "wrong-7321", str)
            with pytest.raises(RefusedError) as caught:
                await IrcChannel("main", harness.settings(), means).run(RecordingDesk())
            assert "7321" not in str(caught.value)

    asyncio.run(scene())


def test_a_nick_that_is_taken_is_had_back_when_it_is_free(tmp_path: Path) -> None:
    async def scene(harness: IrcHarness, _channel: IrcChannel, desk: RecordingDesk) -> None:
        ann, bob = harness.people["ann"], harness.people["bob"]
        await ann.ask("PRIVMSG", "bob_", "you with the line")
        assert (await desk.got(1))[0].text == "you with the line"
        since = len(ann.lines)
        await bob.ask("NICK", "robert")
        await ann.until("NICK", since, "bob_!")
        await ann.ask("PRIVMSG", GROUP, "bob: hi")
        assert (await desk.got(2))[1].mentioned

    play(tmp_path, scene, nick="bob")


def test_kicked_it_is_back_after_a_while(tmp_path: Path) -> None:
    async def scene(harness: IrcHarness, channel: IrcChannel, _desk: RecordingDesk) -> None:
        ann = harness.people["ann"]  # who came first is the operator
        await ann.ask("MODE", GROUP, "+n")
        since = len(ann.lines)
        await ann.ask("KICK", GROUP, "limpet")
        await ann.until("JOIN", since, "limpet!")
        await channel.send(piece(harness.address("group"), "here again"))

    play(tmp_path, scene)


def test_a_full_line_arrives_whole_under_the_longest_name(tmp_path: Path) -> None:
    async def scene(harness: IrcHarness, channel: IrcChannel, _desk: RecordingDesk) -> None:
        text = "é" * (channel.traits.limit // 2)
        await channel.send(piece(harness.address("group"), text))
        assert [one.text for one in await harness.shown("group")] == [text]

    play(tmp_path, scene)


def test_a_line_that_the_server_would_cut_is_refused(tmp_path: Path) -> None:
    async def scene(harness: IrcHarness, channel: IrcChannel, _desk: RecordingDesk) -> None:
        with pytest.raises(RefusedError, match=str(LONGEST)):
            await channel.send(piece(harness.address("group"), "x" * 490))
        assert await harness.shown("group") == []

    play(tmp_path, scene)


def test_a_target_can_smuggle_no_command(tmp_path: Path) -> None:
    async def scene(harness: IrcHarness, channel: IrcChannel, _desk: RecordingDesk) -> None:
        where = msgspec.structs.replace(harness.address("direct"), chat="ann,bob")
        with pytest.raises(RefusedError):
            await channel.send(piece(where, "hello"))

    play(tmp_path, scene)


def test_notices_and_requests_between_clients_are_nothing_said(tmp_path: Path) -> None:
    async def scene(harness: IrcHarness, _channel: IrcChannel, desk: RecordingDesk) -> None:
        ann = harness.people["ann"]
        ann.put("NOTICE", "limpet", "I am a bot too")
        ann.put("PRIVMSG", "limpet", "\x01VERSION\x01")
        ann.put("PRIVMSG", "limpet", "\x01ACTION waves\x01")
        assert [one.text for one in await desk.got(1)] == ["* ann waves"]

    play(tmp_path, scene)


def test_what_could_not_be_stored_is_held(tmp_path: Path) -> None:
    async def scene(harness: IrcHarness, channel: IrcChannel, desk: RecordingDesk) -> None:
        harness.people["ann"].put("PRIVMSG", "limpet", "keep me")
        (arrival,) = await desk.got(1)
        assert desk.attempts == [arrival.event] * 2
        await desk.until(lambda: desk.states[-1] == "up")

    play(tmp_path, scene, desk=RecordingDesk(failures=1))


def test_many_messages_go_out_at_the_pace_that_servers_bear(tmp_path: Path) -> None:
    async def scene(harness: IrcHarness, channel: IrcChannel, _desk: RecordingDesk) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        for number in range(6):
            await channel.send(piece(harness.address("direct"), str(number), key=str(number)))
        assert loop.time() - began >= 0.2
        assert [one.text for one in await harness.shown("direct")] == list("012345")

    play(tmp_path, scene, burst=2, pause=0.05)


class Played:
    """A server that says the lines of `script` when it hears the word before them."""

    def __init__(self, script: dict[str, str]) -> None:
        self.script = script
        self.heard: list[str] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while raw := await reader.readline():
            text = raw.decode().strip()
            self.heard.append(text)
            for begins, answer in self.script.items():
                if text.startswith(begins):
                    writer.write(f"{answer}\r\n".encode())
            if text.startswith("PING"):
                writer.write(f":s PONG s {text.split()[1]}\r\n".encode())
        writer.close()


def played(
    tmp_path: Path, script: dict[str, str], scene: Callable[[IrcChannel, RecordingDesk], Awaitable[None]]
) -> Played:
    server = Played(script)

    async def whole() -> None:
        async with await asyncio.start_server(server.serve, "127.0.0.1", 0) as listening:
            settings = IrcSettings(
                server="127.0.0.1",
                port=listening.sockets[0].getsockname()[1],
                tls=False,
                account="limpet-bot",
                account_password="env:X",
            )
            means = Means(FakeClock(), str(tmp_path), lambda _: "s" * 300, str)
            await scene(IrcChannel("main", settings, means, patience=Patience(register=5.0)), RecordingDesk())

    asyncio.run(whole())
    return server


WELCOME = {
    "CAP LS": ":s CAP * LS * :multi-prefix account-tag\r\n:s CAP * LS :sasl=PLAIN message-tags",
    "CAP REQ": ":s CAP * ACK :account-tag message-tags sasl",
    "AUTHENTICATE :PLAIN": "AUTHENTICATE +",
    "CAP :END": ":s 001 limpet :Welcome",
}
LOGIN = base64.b64encode(f"limpet-bot\0limpet-bot\0{'s' * 300}".encode()).decode()
LAST_PIECE = f"AUTHENTICATE :{LOGIN[400:]}"


def test_who_is_logged_in_is_known_by_the_account(tmp_path: Path) -> None:
    said = (
        "@account=ann;msgid=m1 :x!y@z PRIVMSG limpet :one\r\n@msgid=m2 :Ann!y@z PRIVMSG limpet :two\r\n"
        "@account=a!b@c;msgid=m3 :w!y@z PRIVMSG limpet :three"
    )

    async def scene(channel: IrcChannel, desk: RecordingDesk) -> None:
        async with running(channel, desk):
            arrivals = await desk.got(3)
            assert [one.sender for one in arrivals] == ["ann", "ann!y@z", "w!y@z"]
            assert [one.event for one in arrivals] == ["m1", "m2", "m3"]

    server = played(tmp_path, {**WELCOME, LAST_PIECE: ":s 903 limpet :in", "PING :limpet": said}, scene)
    sent = [one.partition(":")[2] for one in server.heard if one.startswith("AUTHENTICATE")][1:]
    assert sent == [LOGIN[:400], LOGIN[400:]]


def test_a_wrong_account_password_is_a_refusal(tmp_path: Path) -> None:
    async def scene(channel: IrcChannel, desk: RecordingDesk) -> None:
        with pytest.raises(RefusedError, match="SASL"):
            await channel.run(desk)

    played(tmp_path, {**WELCOME, LAST_PIECE: ":s 904 limpet :no"}, scene)


def test_a_server_that_wants_fewer_messages_is_given_time(tmp_path: Path) -> None:
    async def scene(channel: IrcChannel, desk: RecordingDesk) -> None:
        async with running(channel, desk):
            with pytest.raises(NotAcceptedError) as caught:
                await channel.send(piece(Address("irc", "main", "ann"), "hello"))
            assert caught.value.retry_after > 0

    script = {**WELCOME, LAST_PIECE: ":s 903 limpet :in", "PRIVMSG": ":s 439 limpet ann :Target change too fast"}
    played(tmp_path, script, scene)


def certificate(folder: Path) -> Path:
    """A key and a certificate for `localhost` that it signs itself, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - timedelta(days=1))
        .not_valid_after(datetime.now(UTC) + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / "certificate.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    return file


def test_with_tls_only_a_certificate_that_somebody_vouches_for_is_taken(tmp_path: Path) -> None:
    async def scene() -> None:
        file = certificate(tmp_path)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(file)
        server = Played({"CAP LS": ":s 001 limpet :Welcome"})
        async with await asyncio.start_server(server.serve, "localhost", 0, ssl=context, family=AF_INET) as listening:
            port = listening.sockets[0].getsockname()[1]
            settings = IrcSettings(server="localhost", port=port, ca=str(file))
            means = Means(FakeClock(), str(tmp_path), str, str)
            async with running(IrcChannel("main", settings, means), RecordingDesk()):
                pass
            server.heard.clear()
            stranger = msgspec.structs.replace(settings, ca="")
            with pytest.raises(ChannelError, match="certificate"):
                await IrcChannel("main", stranger, means).run(RecordingDesk())
            assert server.heard == []

    asyncio.run(scene())
