"""The channel `email`: a mailbox, and mails to whom has written.

The event of a mail is `UIDVALIDITY:UID`, which a server gives once. A person's chat is the address (see `sender`), a
thread is named by the mail that began it.
"""

from __future__ import annotations

import asyncio
import logging

from limpet.channels.email.mailbox import ANSWER, Mailbox
from limpet.channels.email.outgoing import File, Letter, deliver, trusting, written
from limpet.channels.email.quoting import cut
from limpet.channels.email.reading import Mail
from limpet.channels.email.sender import UNVERIFIED, automatic, verified
from limpet.channels.email.threads import Thread, Threads
from limpet.channels.fixed import Fixed
from limpet.channels.kinds import Means
from limpet.config.channels import EmailSettings
from limpet.errors import ChannelError, ConfigError, RefusedError, StoreError
from limpet.types.channel import ALL, Arrival, Desk, Piece, Traits
from limpet.types.envelope import Address

log = logging.getLogger(__name__)

_UPLOAD = 15_000_000
"""Bytes of a file: servers take mails of 25 MB (some 20), and files grow by 4/3 in them."""
_TOO_LARGE = "[This mail has {size} bytes, more than are fetched: only its subject is here.]"


def make(account: str, settings: EmailSettings, means: Means) -> EmailChannel:
    """The channel of `[channels.email.ACCOUNT]`. Raises `ConfigError` when address, servers or password are missing."""
    import aioimaplib as _imap  # pyright: ignore[reportMissingTypeStubs]
    import aiosmtplib as _smtp

    del _imap, _smtp  # said in time what is not installed
    return EmailChannel(account, settings, means)


class EmailChannel(Fixed):
    """One mailbox."""

    def __init__(self, account: str, settings: EmailSettings, means: Means, *, wait: float = ANSWER) -> None:
        where = f"channels.email.{account}"
        for name in ("address", "imap_host", "smtp_host", "password"):
            if not getattr(settings, name):
                raise ConfigError(f"{where}.{name} is empty.", hint="docs/channels/email.md says what goes there.")
        self._account = account
        self._settings = settings
        self._own = settings.address.lower()
        self._means = means
        self._password = means.secret(settings.password)
        self._threads = Threads(means.folder, self._own.rpartition("@")[2])
        self._wait = wait

    @property
    def name(self) -> str:
        return "email"

    @property
    def account(self) -> str:
        return self._account

    @property
    def traits(self) -> Traits:
        return Traits(markup="email", limit=ALL, upload=_UPLOAD, caption=ALL, needs_link=False)

    async def run(self, desk: Desk) -> None:
        mailbox = Mailbox(self._settings, self._password, self._means.folder, wait=self._wait)
        try:
            await mailbox.open(trusting(self._settings.ca) if self._settings.imap_tls else None)
            while True:
                for uid in await mailbox.new():
                    await self._take(mailbox, uid, desk)
                mailbox.caught_up()
                desk.up()
                await mailbox.change()
        except StoreError as error:
            # Nothing was noted: the next connection gives it again.
            raise ChannelError(f"what came in could not be stored: {error}") from error
        finally:
            await mailbox.shut()

    async def _take(self, mailbox: Mailbox, uid: int, desk: Desk) -> None:
        size = await mailbox.size(uid)
        whole = size <= self._settings.largest
        data = await mailbox.fetch(uid, whole=whole)
        event = f"{mailbox.validity}:{uid}"
        arrival = None
        if data:
            mail = await asyncio.to_thread(Mail, data, whole=whole)
            arrival = self._arrival(mail, event, text=mail.text if whole else _TOO_LARGE.format(size=size))
        if arrival is not None:
            await desk.receive(arrival)
        await mailbox.taken(uid, seen=arrival is not None)

    def _arrival(self, mail: Mail, event: str, *, text: str) -> Arrival | None:
        """What a mail says to us; None: nothing, or a machine sent it, to which nobody may answer."""
        why = automatic(mail.header, mail.address, self._own) if mail.address else "nobody sent it"
        if why:
            log.info("email %s: mail %s is left to people: %s", self._account, event, why)
            return None
        checked = mail.headers("Authentication-Results")
        known = mail.alone and verified(checked, self._settings.authserv, mail.address)
        sender = mail.address if known else UNVERIFIED + mail.address
        text, quoted = cut(text) if self._threads.answered(mail) else (text, "")
        thread = self._threads.of(mail, event)
        if not (mail.answers or mail.references) and mail.subject and not text.startswith("/"):
            text = f"{mail.subject}\n\n{text}".strip()
        if not (text or mail.files):
            return None
        self._threads.note(sender, thread, mail)
        return Arrival(
            Address("email", self._account, sender, thread),
            event,
            sender,
            text,
            message=mail.id,
            sender_name=mail.name or mail.address,
            quoted=quoted,
            files=mail.files,
            sent=mail.sent,
            reply_to=next(iter(mail.answers), ""),
        )

    async def close(self) -> None:
        pass

    async def send(self, piece: Piece) -> str:
        to = piece.address.chat.removeprefix(UNVERIFIED)
        if not to.isascii() or to.count("@") != 1 or not to.isprintable() or set(to) & set(' <>,;:"()[]\\'):
            raise RefusedError(f"{to!r} is no address that mail can be sent to")
        files = tuple(File(one.name, one.mime, self._path(one.blob)) for one in piece.attachments)
        about = self._threads.find(piece.address.chat, piece.address.thread)
        answers = piece.reply_to or (about.references[-1] if piece.address.thread and about.references else "")
        letter = Letter(
            to,
            self._threads.id(piece.address.thread, piece.key),
            piece.body,
            about if answers else Thread(),
            self._means.clock.now(),
            answers=answers,
            files=files,
        )
        mail = await written(letter, self._settings)
        await deliver(mail, to, self._settings, password=self._password, wait=self._wait)
        return letter.id

    def _path(self, blob: str) -> str:
        try:
            return self._means.blob(blob)
        except FileNotFoundError:
            raise RefusedError("the file to be sent is gone") from None
