"""Mails that go out: how they are made, and what became of them at the server."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formataddr, formatdate
from pathlib import Path

from msgspec import Struct

from limpet.channels.email.threads import Thread
from limpet.config.channels import EmailSettings
from limpet.errors import NotAcceptedError, RefusedError, UnsureError
from limpet.types.channel import Body

_WIDE = SMTP.clone(max_line_length=900)
"""Ids of mails are too long to be folded at 78 characters."""
_SUBJECT = 78
_GOODBYE = 2.0
"""Seconds for the server to answer a goodbye."""


class File(Struct, frozen=True):
    name: str
    mime: str
    path: str


class Letter(Struct, frozen=True):
    """What a mail says to whom. `answers` is the mail that it answers, empty: none."""

    to: str
    id: str
    body: Body
    thread: Thread
    date: int
    answers: str = ""
    files: tuple[File, ...] = ()


def compose(letter: Letter, settings: EmailSettings) -> bytes:
    """The mail as it is sent. It says that a program wrote it, so that no other program answers (RFC 3834)."""
    mail = EmailMessage(_WIDE)
    mail["From"] = formataddr((_line(settings.display), settings.address))
    mail["To"] = letter.to
    mail["Subject"] = _subject(letter)
    mail["Date"] = formatdate(letter.date / 1000)
    mail["Message-ID"] = letter.id
    if letter.answers:
        mail["In-Reply-To"] = letter.answers
    if letter.thread.references:
        mail["References"] = " ".join(letter.thread.references)
    mail["Auto-Submitted"] = "auto-replied" if letter.thread.references else "auto-generated"
    mail["X-Auto-Response-Suppress"] = "All"
    mail.set_content(letter.body.plain)
    if letter.body.markup:
        page = f'<!doctype html><html><head><meta charset="utf-8"></head><body>{letter.body.markup}</body></html>'
        mail.add_alternative(page, subtype="html")
    for file in letter.files:
        kind, _, detail = file.mime.partition("/")
        data = Path(file.path).read_bytes()
        mail.add_attachment(data, maintype=kind, subtype=detail or "octet-stream", filename=_line(file.name))
    return mail.as_bytes()


def _subject(letter: Letter) -> str:
    if letter.thread.references or letter.thread.subject:
        subject = _line(letter.thread.subject)
        return subject if subject.lower().startswith(("re:", "aw:", "sv:")) else f"Re: {subject}".strip()
    first = _line(letter.body.plain.strip().partition("\n")[0])
    return first if len(first) <= _SUBJECT else f"{first[: _SUBJECT - 1].rsplit(' ', 1)[0]}…"


def _line(text: str) -> str:
    return " ".join(text.split())


async def deliver(mail: bytes, to: str, settings: EmailSettings, *, password: str, wait: float) -> None:
    """Hand a mail to the server. Raises `NotAcceptedError`, `RefusedError` and `UnsureError`."""
    import aiosmtplib

    trust = trusting(settings.ca) if settings.smtp_tls != "off" else None
    client = aiosmtplib.SMTP(
        hostname=settings.smtp_host,
        port=settings.smtp_port,
        username=(settings.user or settings.address) if password else None,
        password=password or None,
        local_hostname=settings.address.rpartition("@")[2],
        timeout=wait,
        use_tls=settings.smtp_tls == "tls",
        start_tls=settings.smtp_tls == "starttls",
        tls_context=trust,
    )
    stage = "let us in"
    try:
        await client.connect()
        stage = "take the mail"
        await client.mail(settings.address)
        await client.rcpt(to)
        stage = "keep the mail"
        await client.data(mail)
        stage = ""
    except aiosmtplib.SMTPResponseException as error:
        about = f"the mail server does not {stage}: {error.code} {error.message[:200]}"
        if error.code >= 500 and stage != "let us in":
            raise RefusedError(about) from None
        raise NotAcceptedError(about) from None
    except (aiosmtplib.SMTPException, OSError) as error:
        about = str(error)[:200] or type(error).__name__
        if stage == "keep the mail":
            raise UnsureError(f"the mail server did not say that it has the mail: {about}") from None
        raise NotAcceptedError(f"the mail server cannot be reached: {about}") from None
    finally:
        if not stage:
            with contextlib.suppress(aiosmtplib.SMTPException, OSError):
                await client.quit(timeout=_GOODBYE)
        client.close()


def trusting(ca: str) -> ssl.SSLContext:
    """Whose certificates are taken. Raises `RefusedError`."""
    try:
        return ssl.create_default_context(cafile=ca or None)
    except OSError as error:
        raise RefusedError(f"the certificates of `ca` cannot be read: {error}") from None


async def written(letter: Letter, settings: EmailSettings) -> bytes:
    """`compose` on a thread: attachments are read."""
    try:
        return await asyncio.to_thread(compose, letter, settings)
    except FileNotFoundError:
        raise RefusedError("the file to be sent is gone") from None
    except ValueError as error:
        raise RefusedError(f"the mail cannot be written: {error}") from None
