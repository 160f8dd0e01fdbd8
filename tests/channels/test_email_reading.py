"""Mails taken apart: what is hostile or broken, who sent it, what of it is new, what it belongs to."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.channels.email.page import words
from limpet.channels.email.quoting import cut
from limpet.channels.email.reading import Mail
from limpet.channels.email.sender import automatic, verified
from limpet.channels.email.threads import Threads
from limpet.errors import InputError

HEAD = b"From: =?utf-8?B?w4RubmU=?= <Ann@Ann.test>\r\nMessage-ID: <1@ann.test>\r\n"


def test_plain_and_html_of_one_text_are_said_once() -> None:
    mail = Mail(
        HEAD + b"Subject: =?iso-8859-1?Q?Caf=E9?=\r\nMIME-Version: 1.0\r\n"
        b"Content-Type: multipart/mixed; boundary=o\r\n\r\n--o\r\n"
        b"Content-Type: multipart/alternative; boundary=i\r\n\r\n"
        b"--i\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n5L2g5aW9\r\n"
        b"--i\r\nContent-Type: text/html\r\n\r\n<b>no</b>\r\n--i--\r\n"
        b'--o\r\nContent-Type: application/pdf; name="a.pdf"\r\nContent-Disposition: attachment;\r\n'
        b" filename*=utf-8''%C3%A4.pdf\r\n\r\n%PDF\r\n--o--\r\n"
    )
    assert (mail.text, mail.subject, mail.name, mail.address) == ("你好", "Café", "Änne", "ann@ann.test")
    (file,) = mail.files
    assert (file.name, file.mime, file.size) == ("ä.pdf", "application/pdf", 4)
    with pytest.raises(InputError):
        asyncio.run(file.fetch(3))


def test_html_alone_is_read_with_its_quotes() -> None:
    page = "<head><title>t</title></head><p>Hi&nbsp;you</p><script>x</script><ul><li>a<li>b</ul>"
    assert words(page + "<blockquote>old</blockquote>") == "Hi you\n\n- a\n- b\n> old"
    assert Mail(HEAD + b"Content-Type: text/html\r\n\r\n<p>Only <i>this</i></p>").text == "Only this"


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        (b"text/plain", "naïve".encode(), "naïve"),
        (b"text/plain", "naïve".encode("latin-1"), "naïve"),
        (b"text/plain; charset=no-such-thing", b"plain", "plain"),
        (b"text/plain; charset=us-ascii", "ü".encode(), "ü"),
        (b"text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64", b"!!!not base64", "!!!not base64"),
        (b"multipart/mixed", b"no boundary at all", ""),
        (b"text", b"no subtype", "no subtype"),
        (b"text/plain", b"a\0b", "ab"),
    ],
)
def test_what_is_broken_is_read_as_far_as_it_goes(kind: bytes, body: bytes, text: str) -> None:
    found = Mail(HEAD + b"Content-Type: " + kind + b"\r\n\r\n" + body)
    assert found.address == "ann@ann.test"
    assert text in found.text


def test_a_mail_of_ten_megabytes_and_one_of_a_thousand_layers_take_no_time() -> None:
    large = Mail(HEAD + b"\r\n" + b"line of text\r\n" * 750_000)
    assert len(large.text) > 9_000_000
    layers = b"".join(b"Content-Type: multipart/mixed; boundary=%d\r\n\r\n--%d\r\n" % (at, at) for at in range(1_000))
    deep = Mail(HEAD + layers + b"\r\nhi" + b"\r\nline" * 100_000)
    assert (deep.address, deep.text, [file.name for file in deep.files]) == ("ann@ann.test", "", ["mail.eml"])


@given(st.binary(max_size=2_000))
def test_whatever_comes_is_a_mail(data: bytes) -> None:
    mail = Mail(HEAD + b"Content-Type: multipart/mixed; boundary=b\r\n" + data)
    mail.text.encode()
    mail.subject.encode()
    Mail(data)


@pytest.mark.parametrize(
    "field",
    ["", "From: undisclosed", "From: <>", "From: ann@ann.test, bob@bob.test", "From: a@a.test\r\nFrom: b@b.test"],
)
def test_who_is_not_one_address_is_nobody_or_not_alone(field: str) -> None:
    mail = Mail(f"{field}\r\n\r\nhi".encode())
    assert not mail.alone


def machine(*fields: str, address: str = "ann@ann.test") -> str:
    mail = Mail("\r\n".join((*fields, "", "hi")).encode())
    return automatic(mail.header, address, "bot@limpet.test")


@pytest.mark.parametrize(
    "field",
    [
        "Auto-Submitted: auto-replied; owner-email=x",
        "Auto-Submitted: auto-generated",
        "Precedence: Bulk",
        "List-Id: <x.test>",
        "List-Unsubscribe: <mailto:x>",
        "X-Autoreply: yes",
        "Return-Path: <>",
        "Content-Type: multipart/report; boundary=x",
    ],
)
def test_machines_are_not_answered(field: str) -> None:
    assert machine(field)


def test_people_are_and_we_ourselves_are_not() -> None:
    assert not machine("Auto-Submitted: no", "Return-Path: <ann@ann.test>")
    assert machine(address="mailer-daemon@x.test")
    assert machine(address="bot@limpet.test")


@pytest.mark.parametrize(
    ("results", "known"),
    [
        (["mx.test; dmarc=pass (p=none) header.from=ann.test"], True),
        (["MX.test 1; spf=fail smtp.mailfrom=x; dkim=pass header.d=ann.test"], True),
        (["mx.test; spf=pass smtp.mailfrom=bounce@ann.test"], True),
        ([], False),
        (["mx.test; none"], False),
        (["evil.test; dmarc=pass header.from=ann.test"], False),
        (["mx.test; dmarc=fail header.from=ann.test"], False),
        (["mx.test; dkim=pass header.d=evil.test"], False),
        (["mx.test; dkim=pass header.d=evil.test header.i=@ann.test"], False),
        (["mx.test; spf=pass smtp.mailfrom=evil.test"], False),
        (["mx.test; dmarc=passed header.from=ann.test"], False),
        (["mx.test; dmarc=pass"], False),
        (["mx.test; spf=fail (dmarc=pass header.from=ann.test) smtp.mailfrom=x"], False),
        (['mx.test; spf=fail smtp.mailfrom="x; dmarc=pass header.from=ann.test"'], False),
        (["mx.test; dmarc=fail", "mx.test; dmarc=pass header.from=ann.test"], False),
        (["mx.test; dkim=pass header.d=notann.test"], False),
    ],
)
def test_only_the_receiving_server_vouches_for_a_sender(results: list[str], known: bool) -> None:
    assert verified(results, "mx.test", "ann@ann.test") == known
    assert not verified(results, "", "ann@ann.test")


@pytest.mark.parametrize(
    ("mail", "said"),
    [
        ("Yes.\n\nOn Tue, Nov 14, 2023 at 10:13 PM The bot <b@x>\nwrote:\n\n> Shall I?\n> Really?\n", "Yes."),
        ("Ja\n\nAm 14.11.2023 um 22:13 schrieb Bot:\n> Soll ich?\n\n-- \nAnn\nTel. 1", "Ja"),
        ("Yes\n-- \nAnn\n\nOn 14 Nov 2023, bot wrote:\n> Shall I?", "Yes"),
        ("Ok\n\n________________________________\nFrom: Bot <b@x>\nSent: Tuesday\n\nold words", "Ok"),
        ("Ok\n-----Original Message-----\nFrom: b@x\n\nold", "Ok"),
        ("> first?\nyes\n> second?\nno", "> first?\nyes\n> second?\nno"),
        ("no quote here\n-- not a signature", "no quote here\n-- not a signature"),
        ("", ""),
    ],
)
def test_what_is_new_in_an_answer(mail: str, said: str) -> None:
    assert cut(mail)[0] == said


@given(st.text(alphabet="a>- \n:1_", max_size=200))
def test_cutting_loses_nothing(text: str) -> None:
    said, rest = cut(text)
    assert "".join((said + rest).split()) == "".join(text.split())


def test_answers_find_their_thread(tmp_path: Path) -> None:
    threads = Threads(str(tmp_path), "limpet.test")
    first = Mail(HEAD + b"Subject: plan\r\n\r\nhi")
    begun = threads.of(first, "1:1")
    assert threads.of(Mail(b"References: <1@ann.test> <2@x>\r\nIn-Reply-To: <2@x>\r\n\r\nhi"), "1:2") == begun
    ours = threads.id(begun, "key")
    assert ours == threads.id(begun, "key") != threads.id(begun, "other")
    answer = Mail(f"In-Reply-To: {ours}\r\n\r\nhi".encode())
    assert (threads.of(answer, "1:3"), threads.answered(answer), threads.answered(first)) == (begun, True, False)
    assert threads.of(Mail(f"In-Reply-To: {threads.id('', 'k')}\r\n\r\nhi".encode()), "1:4") == ""
    assert threads.of(Mail(b"\r\nhi"), "1:5") != threads.of(Mail(b"\r\nhi"), "1:6")
    threads.note("ann", begun, first)
    assert Threads(str(tmp_path), "limpet.test").find("ann", begun).references == ("<1@ann.test>",)
    assert threads.find("bob", begun).references == ()
