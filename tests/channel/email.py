from __future__ import annotations

import asyncio
import contextlib
import functools
import getpass
import hashlib
import os
import pwd
import shutil
import ssl
import tempfile
import weakref
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Literal, Self

import msgspec
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from limpet.channels.email.channel import EmailChannel
from limpet.channels.kinds import Means
from limpet.config.channels import EmailSettings
from limpet.testing.blobs import FolderBlobs
from limpet.testing.clock import FakeClock
from limpet.types.envelope import Address, Attachment
from tests.channel.harness import Fault, Place, Say, Shown, Skill
from tests.channel.servers import Relay, certificate, free_port, program, served

PASSWORD = 'limpet-"rock\\-17'
BOT = "Bot@limpet.test"
ROOT = "<root@ann.test>"
CHECKED = "mx.test; dmarc=pass header.from=ann.test; spf=fail smtp.mailfrom=x.test"


class Dovecot:
    """An IMAP server over one Maildir, into which mails are put as a delivery agent does."""

    def __init__(self, *, encrypted: bool = False) -> None:
        self._program = program("dovecot", "dovecot-imapd")
        self.port = free_port()
        self._folder = Path(tempfile.mkdtemp(prefix="limpet-imap-"))  # short, and open to the server's user
        self._folder.chmod(0o755)
        self._stack = contextlib.AsyncExitStack()
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)  # skipped tests never enter it
        self._count = 0
        self.ca = certificate(self._folder / "tls") if encrypted else ""
        self._user = "nobody" if os.getuid() == 0 else getpass.getuser()
        self.mail = self._folder / "mail"
        for name in ("new", "cur", "tmp"):
            (self.mail / name).mkdir(parents=True)
        self._own(self.mail, *self.mail.iterdir())

    def _own(self, *paths: Path) -> None:
        if os.getuid() == 0:
            found = pwd.getpwnam(self._user)
            for path in paths:
                os.chown(path, found.pw_uid, found.pw_gid)

    async def __aenter__(self) -> Self:
        run, user = self._folder / "run", self._user
        open_port, secret_port = (0, self.port) if self.ca else (self.port, 0)
        tls = f"ssl=yes\nssl_cert=<{self.ca}\nssl_key=<{self._folder}/tls/key.pem" if self.ca else "ssl=no"
        group = "nogroup" if os.getuid() == 0 else ""
        config = self._folder / "dovecot.conf"
        config.write_text(
            f"""base_dir={run}
state_dir={run}
protocols=imap
listen=127.0.0.1
log_path={self._folder}/log
{tls}
disable_plaintext_auth=no
mail_location=maildir:{self.mail}
default_internal_user={user}
default_internal_group={group or user}
default_login_user={user}
first_valid_uid=1
passdb {{
  driver = passwd-file
  args = scheme=PLAIN username_format=%u {self._folder}/users
}}
userdb {{
  driver = static
  args = uid={user} gid={group or user} home={self.mail}
}}
service imap-login {{
  inet_listener imap {{
    port = {open_port}
  }}
  inet_listener imaps {{
    port = {secret_port}
  }}
  chroot =
}}
service anvil {{
  chroot =
}}
service stats {{
  chroot =
}}
"""
        )
        (self._folder / "users").write_text(f"{BOT.lower()}:{{PLAIN}}{PASSWORD}\n")
        (self._folder / "users").chmod(0o644)
        started = served(self._program, "-F", "-c", str(config), port=self.port, log=self._folder / "out")
        await self._stack.enter_async_context(started)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def put(self, data: bytes) -> None:
        """A mail is delivered."""
        self._count += 1
        name = f"{1_700_000_000 + self._count}.M{self._count}.test"
        (self.mail / "tmp" / name).write_bytes(data)
        self._own(self.mail / "tmp" / name)
        (self.mail / "tmp" / name).rename(self.mail / "new" / name)

    def unseen(self) -> int:
        mails = [path.name for folder in ("new", "cur") for path in (self.mail / folder).iterdir()]
        return sum("S" not in name.partition(":2,")[2] for name in mails)

    def renumber(self) -> None:
        """The mailbox forgets its numbers: UIDVALIDITY is another one."""
        for path in self.mail.glob("dovecot*"):
            path.unlink()
        (self.mail / "dovecot-uidlist").write_text("3 V77777 N1 G0123456789abcdef0123456789abcdef\n")
        self._own(self.mail / "dovecot-uidlist")


class Sink:
    """An SMTP server that keeps what it is given. `answer` is what it says to a recipient, `stored` to a mail."""

    def __init__(self, trust: ssl.SSLContext | None = None) -> None:
        self._trust = trust
        self.mails: list[EmailMessage] = []
        self.answer = "250 OK"
        self.stored = "250 OK"
        self.silent = False
        self.port = free_port()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        make = functools.partial(SMTP, self, hostname="mx.test", auth_require_tls=False, authenticator=self._admit)
        self._server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", self.port, ssl=self._trust)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
            self._server = None

    def _admit(self, _server: SMTP, _session: Session, _envelope: Envelope, _way: str, data: object) -> AuthResult:
        known = isinstance(data, LoginPassword) and data == LoginPassword(BOT.encode(), PASSWORD.encode())
        return AuthResult(success=known)

    async def handle_RCPT(
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        if self.answer.startswith("250"):
            envelope.rcpt_tos.append(address)
        return self.answer

    async def handle_DATA(self, server: SMTP, _session: Session, envelope: Envelope) -> str:
        if self.stored.startswith("250"):
            assert isinstance(envelope.content, bytes)
            self.mails.append(message_from_bytes(envelope.content, policy=policy.default))  # type: ignore[arg-type]
        if self.silent:
            assert server.transport is not None
            server.transport.abort()
        return self.stored


def mail(text: str, *, sender: str = "Ann <Ann@ann.test>", checked: str = CHECKED, **fields: str) -> EmailMessage:
    """A mail to the bot; `fields` by their names with `_` for `-`."""
    one = EmailMessage(policy.SMTP)
    if checked:
        one["Authentication-Results"] = checked
    one["From"] = sender
    one["To"] = BOT
    one["Date"] = "Tue, 14 Nov 2023 22:13:20 +0000"
    for name, value in fields.items():
        one[name.replace("_", "-")] = value
    one.set_content(text)
    return one


def channel(imap: int, smtp: int, folder: Path, *, wait: float = 5.0, **settings: object) -> EmailChannel:
    """The channel as the gateway makes it."""
    base = {
        "address": BOT, "display": "The bot", "password": "env:P", "authserv": "mx.test",
        "imap_host": "127.0.0.1", "imap_port": imap, "imap_tls": False,
        "smtp_host": "127.0.0.1", "smtp_port": smtp, "smtp_tls": "off",
    }  # fmt: skip
    one = msgspec.convert({**base, **settings}, EmailSettings)
    means = Means(FakeClock(), str(folder / "email"), lambda _: PASSWORD, FolderBlobs(folder / "blobs").path)
    return EmailChannel("main", one, means, wait=wait)


class EmailHarness:
    skills: frozenset[Skill] = frozenset(
        ("redelivery", "reconnect", "files", "replies", "unreachable", "refused", "lost")
    )
    secrets = (PASSWORD,)

    def __init__(self, folder: Path) -> None:
        self.imap = Dovecot()
        self.sink = Sink()
        self._relay = Relay(self.imap.port)
        self._folder = folder
        self._blobs = FolderBlobs(folder / "blobs")
        self._stack = contextlib.AsyncExitStack()
        self._count = 0

    async def __aenter__(self) -> Self:
        for one in (self.imap, self._relay, self.sink):
            await self._stack.enter_async_context(one)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def make(self) -> EmailChannel:
        return channel(self._relay.port, self.sink.port, self._folder)

    def address(self, place: Place) -> Address:
        return Address("email", "main", "ann@ann.test", hashlib.sha256(ROOT.encode()).hexdigest()[:16])

    def sender(self, name: Literal["ann", "bob"]) -> str:
        return f"{name}@ann.test"

    async def say(self, say: Say) -> str:
        self._count += 1
        id = f"<{self._count}@ann.test>"
        one = mail(
            say.text,
            sender=f"{say.sender.title()} <{say.sender}@ann.test>",
            Message_ID=id,
            Subject="Re: talk",
            In_Reply_To=say.reply_to or ROOT,
            References=ROOT,
        )
        if say.file:
            one.add_attachment(say.file[1], maintype="text", subtype="plain", filename=say.file[0])
        self.imap.put(one.as_bytes())
        return id

    async def waiting(self) -> int:
        return self.imap.unseen()

    async def shown(self, place: Place) -> list[Shown]:
        found: list[Shown] = []
        for one in self.sink.mails:
            body = one.get_body(("plain",))
            assert body is not None
            files = tuple(part.get_filename() or "" for part in one.iter_attachments())
            text = str(body.get_content()).replace("\r\n", "\n").rstrip("\n")
            found.append(Shown(one["Message-ID"], text, reply_to=one["In-Reply-To"] or "", files=files))
        return found

    async def reaction(self, message: str) -> str:
        return ""

    async def typed(self, place: Place) -> int:
        return 0

    async def attach(self, name: str, data: bytes) -> Attachment:
        return Attachment(await self._blobs.put(data), name, "text/plain", len(data))

    async def fail(self, fault: Fault) -> None:
        if fault == "unreachable":
            await self.sink.stop()
        elif fault == "refused":
            self.sink.answer = "550 no such user"
        else:
            self.sink.silent = True

    async def heal(self) -> None:
        self.sink.answer, self.sink.silent = "250 OK", False
        await self.sink.stop()
        await self.sink.start()

    async def cut(self) -> None:
        self._relay.cut()
