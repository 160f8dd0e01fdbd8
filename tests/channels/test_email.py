"""Beside the contract: what is e-mail's own, against dovecot and an SMTP server."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from limpet.channels.email.channel import EmailChannel
from limpet.errors import ChannelError, ConfigError, NotAcceptedError, RefusedError
from limpet.types.channel import Body, Piece
from limpet.types.envelope import Address
from tests.channel.email import Dovecot, EmailHarness, Sink, channel, mail
from tests.channel.harness import RecordingDesk, Say, piece, running

ANN = Address("email", "main", "ann@ann.test")
Scene = Callable[[EmailHarness, EmailChannel, RecordingDesk], Awaitable[None]]


def play(folder: Path, scene: Scene) -> None:
    """The scene with the channel at work."""

    async def whole() -> None:
        async with EmailHarness(folder) as harness:
            desk, one = RecordingDesk(), harness.make()
            async with running(one, desk):
                await scene(harness, one, desk)

    asyncio.run(asyncio.wait_for(whole(), 60))


def test_who_is_not_vouched_for_is_somebody_else(tmp_path: Path) -> None:
    async def scene(harness: EmailHarness, _: EmailChannel, desk: RecordingDesk) -> None:
        harness.imap.put(mail("hi", checked="mx.test; dmarc=fail header.from=ann.test").as_bytes())
        harness.imap.put(mail("hi", checked="").as_bytes())
        harness.imap.put(mail("hi").as_bytes())
        arrivals = await desk.got(3)
        assert [one.sender for one in arrivals] == ["unverified:ann@ann.test"] * 2 + ["ann@ann.test"]
        assert [one.address.chat for one in arrivals] == [one.sender for one in arrivals]

    play(tmp_path, scene)


def test_machines_and_broken_mails_hold_nothing_up_and_stay_unread(tmp_path: Path) -> None:
    async def scene(harness: EmailHarness, _: EmailChannel, desk: RecordingDesk) -> None:
        harness.imap.put(mail("away", Auto_Submitted="auto-replied").as_bytes())
        harness.imap.put(b"\xff\xfe no mail at all")
        harness.imap.put(b"")
        harness.imap.put(mail("I said it", sender="bot@limpet.test").as_bytes())
        harness.imap.put(mail("a person", Subject="plan").as_bytes())
        (arrival,) = await desk.got(1)
        assert arrival.text == "plan\n\na person"
        assert arrival.sent == 1_700_000_000_000
        await desk.until(lambda: harness.imap.unseen() <= 4)

    play(tmp_path, scene)


def test_what_came_before_the_first_start_is_old_and_what_came_while_away_is_new(tmp_path: Path) -> None:
    async def whole() -> None:
        async with EmailHarness(tmp_path) as harness:
            harness.imap.put(mail("old").as_bytes())
            async with running(harness.make(), RecordingDesk()):
                pass
            harness.imap.put(mail("one").as_bytes())
            harness.imap.put(mail("two").as_bytes())
            desk = RecordingDesk()
            async with running(harness.make(), desk):
                assert [arrival.text for arrival in await desk.got(2)] == ["one", "two"]
            assert harness.imap.unseen() == 1

    asyncio.run(asyncio.wait_for(whole(), 60))


def test_a_mailbox_numbered_anew_gives_what_nobody_has_seen(tmp_path: Path) -> None:
    async def whole() -> None:
        async with EmailHarness(tmp_path) as harness:
            first, desk = RecordingDesk(), RecordingDesk()
            async with running(harness.make(), first):
                harness.imap.put(mail("taken").as_bytes())
                await first.got(1)
                await first.until(lambda: harness.imap.unseen() == 0)
            harness.imap.renumber()
            harness.imap.put(mail("new").as_bytes())
            async with running(harness.make(), desk):
                (arrival,) = await desk.got(1)
                assert arrival.text == "new"
                assert arrival.event.partition(":")[0] != first.arrivals[0].event.partition(":")[0]

    asyncio.run(asyncio.wait_for(whole(), 60))


def test_an_answer_stands_in_its_thread_and_says_that_a_program_wrote_it(tmp_path: Path) -> None:
    async def scene(harness: EmailHarness, one: EmailChannel, desk: RecordingDesk) -> None:
        harness.imap.put(mail("when?", Subject="Straße", Message_ID="<1@ann.test>").as_bytes())
        (arrival,) = await desk.got(1)
        body = Body("<p>at <b>nine</b></p>", "at nine")
        ours = await one.send(Piece(arrival.address, body, "k1", reply_to=arrival.message))
        sent = harness.sink.mails[-1]
        assert (sent["Subject"], sent["In-Reply-To"], sent["To"]) == ("Re: Straße", "<1@ann.test>", "ann@ann.test")
        assert (sent["References"], sent["Auto-Submitted"]) == ("<1@ann.test>", "auto-replied")
        assert sent.get_content_type() == "multipart/alternative"
        page = sent.get_body(("html",))
        assert page is not None
        assert "<b>nine</b>" in page.get_content()
        answer = mail("late!\n\nOn 14 Nov 2023 bot wrote:\n> at nine", Subject="Re: Straße", In_Reply_To=ours)
        harness.imap.put(answer.as_bytes())
        reply = (await desk.got(2))[1]
        assert (reply.text, reply.address, reply.reply_to) == ("late!", arrival.address, ours)
        assert "at nine" in reply.quoted

    play(tmp_path, scene)


def test_a_mail_out_of_the_blue_begins_with_its_subject(tmp_path: Path) -> None:
    async def scene(harness: EmailHarness, one: EmailChannel, desk: RecordingDesk) -> None:
        await one.send(piece(ANN, "Your\ttea\n\nis ready\r\nBcc: x@y.test"))
        sent = harness.sink.mails[-1]
        assert (sent["Subject"], sent["In-Reply-To"], sent["Bcc"]) == ("Your tea", None, None)
        assert sent["Auto-Submitted"] == "auto-generated"
        harness.imap.put(mail("thanks", Subject="Re: Your tea", In_Reply_To=sent["Message-ID"]).as_bytes())
        assert (await desk.got(1))[0].address == ANN

    play(tmp_path, scene)


def test_of_a_mail_that_is_too_large_the_subject_arrives(tmp_path: Path) -> None:
    async def whole() -> None:
        async with EmailHarness(tmp_path) as harness:
            one, desk = channel(harness.imap.port, harness.sink.port, tmp_path, largest=5_000), RecordingDesk()
            async with running(one, desk):
                harness.imap.put(mail("x\n" * 5_000, Subject="pictures").as_bytes())
                (arrival,) = await desk.got(1)
                assert arrival.text.startswith("pictures\n\n[This mail has 1")
                assert arrival.sender == "ann@ann.test"

    asyncio.run(asyncio.wait_for(whole(), 60))


@pytest.mark.parametrize(
    ("answer", "stored", "error"),
    [
        ("451 later", "250 OK", NotAcceptedError),
        ("550 never", "250 OK", RefusedError),
        ("250 OK", "452 full", NotAcceptedError),
        ("250 OK", "554 spam", RefusedError),
    ],
)
def test_what_the_server_says_decides(tmp_path: Path, answer: str, stored: str, error: type[Exception]) -> None:
    async def scene(harness: EmailHarness, one: EmailChannel, _: RecordingDesk) -> None:
        harness.sink.answer, harness.sink.stored = answer, stored
        with pytest.raises(error):
            await one.send(piece(ANN, "hi"))
        assert harness.sink.mails == []

    play(tmp_path, scene)


@pytest.mark.parametrize("to", ["", "ann", "a@b@c", "a b@c.test", "a@c.test\r\nBcc: x@y", "<a@c.test>", "ä@c.test"])
def test_what_is_no_address_is_refused(tmp_path: Path, to: str) -> None:
    with pytest.raises(RefusedError):
        asyncio.run(channel(1, 1, tmp_path).send(piece(Address("email", "main", to), "hi")))


def test_a_wrong_password_ends_the_channel_and_only_delays_mails(tmp_path: Path) -> None:
    async def whole() -> None:
        async with EmailHarness(tmp_path) as harness:
            one = channel(harness.imap.port, harness.sink.port, tmp_path, user="other")
            with pytest.raises(RefusedError, match="password"):
                await one.run(RecordingDesk())
            with pytest.raises(NotAcceptedError):
                await one.send(piece(ANN, "hi"))

    asyncio.run(asyncio.wait_for(whole(), 60))


def test_encrypted_servers_are_trusted_by_their_certificates_only(tmp_path: Path) -> None:
    async def whole() -> None:
        imap, trust = Dovecot(encrypted=True), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trust.load_cert_chain(imap.ca, str(Path(imap.ca).with_name("key.pem")))
        async with imap, Sink(trust) as sink:

            def one(ca: str) -> EmailChannel:
                hosts = {"imap_host": "localhost", "smtp_host": "localhost"}
                return channel(imap.port, sink.port, tmp_path, imap_tls=True, smtp_tls="tls", ca=ca, **hosts)

            async with running(one(imap.ca), RecordingDesk()):
                await one(imap.ca).send(piece(ANN, "hi"))
            assert len(sink.mails) == 1
            with pytest.raises(ChannelError, match="certificate"):
                await one("").run(RecordingDesk())
            with pytest.raises(NotAcceptedError, match="certificate"):
                await one("").send(piece(ANN, "hi"))
            with pytest.raises(RefusedError, match="`ca`"):
                await one("/nowhere").run(RecordingDesk())

    asyncio.run(asyncio.wait_for(whole(), 60))


@pytest.mark.parametrize("name", ["address", "imap_host", "smtp_host", "password"])
def test_what_is_missing_is_told(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        channel(1, 1, tmp_path, **{name: ""})


def test_a_burst_of_mails_comes_in_order(tmp_path: Path) -> None:
    async def scene(harness: EmailHarness, _: EmailChannel, desk: RecordingDesk) -> None:
        for number in range(20):
            await harness.say(Say(f"number {number}"))
        assert [one.text for one in await desk.got(20)] == [f"number {number}" for number in range(20)]

    play(tmp_path, scene)
