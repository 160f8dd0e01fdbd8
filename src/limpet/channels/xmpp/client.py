"""One stream to an XMPP server. Imports slixmpp: loaded when the channel runs.

What comes in is put in line, and so are the server's questions how much of it we have (XEP-0198): such a question is
answered when its turn comes, that is after everything before it was stored. The stream is never resumed: what the
server knows to be unanswered when a stream ends it gives to the next one, in this process or another.
"""

# The library has types, but not for everything.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false
from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path

from slixmpp import ClientXMPP
from slixmpp.exceptions import IqError, IqTimeout, PresenceError
from slixmpp.jid import JID
from slixmpp.plugins.xep_0198 import stanza as management
from slixmpp.stanza import Message, Presence
from slixmpp.xmlstream.handler import Callback
from slixmpp.xmlstream.matcher import MatchXPath

from limpet.channels.xmpp.rooms import Rooms
from limpet.config.channels import XmppSettings
from limpet.errors import ChannelError, NotAcceptedError, NotReadyError, RefusedError, UnsureError

log = logging.getLogger(__name__)

_PLUGINS = ("xep_0045", "xep_0066", "xep_0085", "xep_0198", "xep_0199", "xep_0203", "xep_0308", "xep_0359", "xep_0363")
_PLUGINS_TOO = ("xep_0421", "xep_0424")
_SECONDS = 30


class Stream(ClientXMPP):
    """A stream of `jid`. `ended` tells why it is over; `line` has messages and numbers of stanzas to be
    confirmed, `outside` rooms that we should be in."""

    def __init__(self, settings: XmppSettings, password: str) -> None:
        plain = {"unencrypted_scram": True, "unencrypted_plain": True}
        jid = f"{JID(settings.jid).bare}/{settings.resource}"
        context = ssl.create_default_context(cafile=settings.ca or None)
        config = {} if settings.tls else {"feature_mechanisms": plain}
        super().__init__(jid, password, plugin_config=config, ssl_context=context)
        for plugin in (*_PLUGINS, *_PLUGINS_TOO):
            self.register_plugin(plugin)
        self._rooms = settings.rooms
        self._address = (settings.host or None, settings.port if settings.host else None)
        if not settings.tls:
            self.enable_direct_tls = self.enable_starttls = False
            self.enable_plaintext = True
        self.auto_authorize = None
        self.auto_subscribe = False
        self.plugin["xep_0198"].allow_resume = False
        self.started = asyncio.Event()
        self.line: asyncio.Queue[Message | int | None] = asyncio.Queue()
        self.ended: asyncio.Future[ChannelError] = asyncio.get_running_loop().create_future()
        self._errors: dict[str, Message | None] = {}
        self.outside: set[str] = set()
        self._count = 0
        self._hear()

    def _hear(self) -> None:
        self.add_event_handler("session_start", lambda _: self.started.set())
        self.add_event_handler("message", self._said)
        self.add_event_handler("message_error", self._refused)
        refused = RefusedError("The XMPP server does not take this account and password.")
        self.add_event_handler("failed_all_auth", lambda _: self._end(refused))
        self.add_event_handler("connection_failed", lambda why: self._end(_unreachable(str(why))))
        self.add_event_handler("ssl_invalid_chain", lambda why: self._end(_unreachable(f"its certificate: {why}")))
        self.add_event_handler("disconnected", lambda why: self._end(_lost(why)))
        for room in self._rooms:
            self.add_event_handler(f"muc::{room}::self-presence", self._moved)
        self.remove_handler("Stream Management Request Ack")
        wanted = MatchXPath(management.RequestAck.tag_name())
        self.register_handler(Callback("Stored Ack", wanted, self._asked, instream=True))

    def _said(self, message: Message) -> None:
        if message["type"] != "error":
            self.line.put_nowait(message)

    def _refused(self, message: Message) -> None:
        log.info("xmpp: %s refuses a message: %s", message["from"], message["error"]["condition"])
        if str(message["id"]) in self._errors:
            self._errors[str(message["id"])] = message

    def _asked(self, _: object) -> None:
        self.line.put_nowait(int(self.plugin["xep_0198"].handled))

    def _end(self, error: ChannelError) -> None:
        self.cancel_connection_attempt()
        if not self.ended.done():
            self.ended.set_result(error)
            self.line.put_nowait(None)

    async def enter(self) -> None:
        """Until we are logged in. Raises `ChannelError`."""
        self.connect(*self._address)
        begun = asyncio.create_task(self.started.wait())
        try:
            async with asyncio.timeout(_SECONDS * 2):
                await asyncio.wait({begun, self.ended}, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            raise ChannelError("The XMPP server does not let us in.") from None
        finally:
            begun.cancel()
        if self.ended.done():
            raise self.ended.result()

    async def join(self, room: str, nick: str, rooms: Rooms) -> None:
        """Go into a room; what was said there since we were in it comes too. Where it fails, `outside` has the room."""
        since = rooms.since(room)
        muc = self.plugin["xep_0045"]
        try:
            if since is None:
                await muc.join_muc_wait(JID(room), nick, maxstanzas=0, timeout=_SECONDS)
            else:
                await muc.join_muc_wait(JID(room), nick, since=since, timeout=_SECONDS)
        except (PresenceError, TimeoutError) as error:
            why = error.condition if isinstance(error, PresenceError) else "no answer"
            log.warning("xmpp: %s does not let us in: %s", room, why)
            self.outside.add(room)
        else:
            self.outside.discard(room)

    def _moved(self, presence: Presence) -> None:
        """We were thrown out of a room, or it is no more."""
        if presence["type"] == "unavailable" and 303 not in presence["muc"]["status_codes"]:
            log.warning("xmpp: we are no more in %s", presence["from"].bare)
            self.outside.add(str(presence["from"].bare))

    async def prove(self) -> None:
        """Until the server has dealt with all that was sent before. Raises `ChannelError` when it is gone."""
        self._count += 1
        iq = self.make_iq_get(ito=JID(self.boundjid.domain))
        iq["id"] = f"proof-{self._count}"
        iq.enable("ping")
        answer = asyncio.ensure_future(iq.send(timeout=_SECONDS))
        answer.add_done_callback(_heard)
        await asyncio.wait({answer, self.ended}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            answer.cancel()
            raise self.ended.result()
        if isinstance(answer.exception(), IqTimeout):
            raise ChannelError("The XMPP server does not answer.")

    async def put(self, message: Message) -> None:
        """Send a message and wait until the server has it. Raises what a send may raise."""
        if self.ended.done() or not self.started.is_set():
            raise NotReadyError("not connected")
        id = str(message["id"])
        self._errors[id] = None
        try:
            message.send()
            await self.prove()
        except ChannelError as error:
            raise UnsureError(str(error)) from None
        finally:
            error = self._errors.pop(id)
        if error is not None:
            about = f"{message['to']}: {error['error']['text'] or error['error']['condition']}"
            if error["error"]["type"] == "wait":
                raise NotAcceptedError(about, retry_after=10.0)
            raise RefusedError(about)

    def written(self, to: str, text: str = "", *, grouped: bool) -> Message:
        """A message that can be sent; without a text it only says that we are writing (XEP-0085)."""
        message = self.make_message(JID(to), mbody=text or None, mtype="groupchat" if grouped else "chat")
        message["id"] = self.new_id()
        message["chat_state"] = "active" if text else "composing"
        return message

    async def upload(self, path: str, name: str, mime: str) -> str:
        """The address of a file that was put on the server. Raises `NotAcceptedError` and `RefusedError`."""
        import aiohttp
        from slixmpp.plugins.xep_0363 import FileTooBig, FileUploadError, UploadServiceNotFound

        try:
            with Path(path).open("rb") as file:
                found = await self.plugin["xep_0363"].upload_file(
                    Path(name), content_type=mime, input_file=file, timeout=_SECONDS
                )
                return str(found)
        except FileNotFoundError:
            raise RefusedError("the file to be sent is gone") from None
        except (FileTooBig, UploadServiceNotFound, IqError) as error:
            raise RefusedError(f"The server does not take {name}: {type(error).__name__}") from None
        except (FileUploadError, IqTimeout, aiohttp.ClientError, TimeoutError, OSError) as error:
            raise NotAcceptedError(f"{name} could not be uploaded: {type(error).__name__}") from None

    def confirm(self, count: int) -> None:
        """Tell the server that we have so many stanzas."""
        if self.transport is not None:
            answer = management.Ack(self)
            answer["h"] = count
            self.send_raw(str(answer))

    async def leave(self) -> None:
        """End the stream and everything that works for it."""
        self.cancel_connection_attempt()
        if self.transport is not None:
            gone = self.disconnected
            self.abort()
            await asyncio.wait({gone}, timeout=2.0)
        if self._run_out_filters is not None:
            self._run_out_filters.cancel()
            await asyncio.wait({self._run_out_filters}, timeout=2.0)


def _heard(answer: asyncio.Future[object]) -> None:
    """An answer that is an error is one, too; and one that nobody waits for any more is no fault."""
    if not answer.cancelled():
        answer.exception()


def _unreachable(why: str) -> ChannelError:
    return ChannelError(f"The XMPP server cannot be reached: {why}")


def _lost(why: object) -> ChannelError:
    return ChannelError(f"The connection to the XMPP server is lost{f': {why}' if why else '.'}")
