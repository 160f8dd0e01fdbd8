"""Webhooks: `POST /hooks/wake`, `/hooks/agent` and those with a name of their own. 202 means that it is on disk.

Who sends has to show a token, or to sign; every answer is JSON and says what to do.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable, Mapping
from typing import Annotated, Literal, TypeVar
from urllib.parse import parse_qsl

import msgspec
from msgspec import Meta, Struct
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from limpet.config.webhooks import OWN, WebhookSettings, WebhooksSettings
from limpet.errors import InputError, LimpetError
from limpet.gateway.outside import Nudge, Outside, Run, Taken, enclosed_payload
from limpet.server import signatures
from limpet.server.body import TooLargeError, read_body
from limpet.server.guard import Failures, foreign_page
from limpet.server.mapping import Event, told
from limpet.types.ids import new_id
from limpet.types.ports import Clock

T = TypeVar("T")
log = logging.getLogger(__name__)

BODY = 10.0
"""Seconds in which an event has to have come completely."""
LONGEST_ID = 200
FIELDS = 1_000
"""Fields of a form."""
HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
Text = Annotated[str, Meta(min_length=1, max_length=100_000)]
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


class WakeCall(Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `/hooks/wake`."""

    text: Annotated[str, Meta(min_length=1, max_length=4_000)]
    mode: Literal["now", "next-heartbeat"] = "now"
    agent: str = "main"


class AgentCall(Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `/hooks/agent`. `session` is `isolated`, `main`, or the name of a conversation of its own.

    `name` is who sends, for people. `channel` and `to` name the chat that is answered; `timeout` is seconds.
    """

    message: Text
    name: Annotated[str, Meta(max_length=80)] = ""
    session: Name = "isolated"
    agent: str = "main"
    deliver: bool = True
    channel: Annotated[str, Meta(max_length=40)] = ""
    to: Annotated[str, Meta(max_length=200)] = ""
    model: Annotated[str, Meta(max_length=200)] = ""
    thinking: Literal["", "off", "low", "medium", "high"] = ""
    timeout: Annotated[float, Meta(gt=0, le=86_400)] | None = None


class _RefusedError(Exception):
    """The answer to a request that is not taken: `status`, what is wrong, and what to do."""

    def __init__(self, status: int, error: str, hint: str = "") -> None:
        super().__init__(error)
        self.status = status
        self.hint = hint

    def answer(self) -> Response:
        headers = dict(HEADERS)
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        if self.status == 405:
            headers["Allow"] = "POST"
        if self.status in (429, 503):
            headers["Retry-After"] = "60"
        return JSONResponse({"error": str(self), "hint": self.hint}, self.status, headers=headers)


class Webhooks:
    """Answers requests below `/hooks/`. `settings` gives those in force, `secret` the value of a reference.

    Failures count by address and hook: behind a proxy all who send have one address.
    """

    def __init__(
        self,
        outside: Outside,
        settings: Callable[[], WebhooksSettings],
        *,
        secret: Callable[[str, str], str],
        clock: Clock,
    ) -> None:
        self._outside = outside
        self._settings = settings
        self._secret = secret
        self._clock = clock
        self._failures = Failures(clock)

    async def answer(self, request: Request) -> Response:
        """One request. Never raises."""
        name = str(request.path_params["name"])
        try:
            return await self._take(request, name)
        except _RefusedError as refused:
            return refused.answer()
        except ClientDisconnect:
            return Response(status_code=400)
        except InputError as error:
            return _RefusedError(422, str(error), error.hint).answer()
        except LimpetError as error:
            log.warning("an event for /hooks/%s could not be taken: %s", name, error)
            return _RefusedError(503, "It cannot be taken right now.", "Send it again later.").answer()

    async def _take(self, request: Request, name: str) -> Response:
        settings = self._settings()
        peer = f"{request.client.host if request.client else ''} /hooks/{name}"
        if why := foreign_page({one: request.headers.get(one, "") for one in ("host", "origin")}):
            raise _RefusedError(403, f"Refused: {why}.")
        if request.method != "POST":
            raise _RefusedError(405, "Only POST is taken here.")
        own = None if name in OWN else settings.hooks.get(name)
        if own is None and (name not in OWN or not settings.token):
            hint = "Configure webhooks.token, or a table webhooks.hooks.NAME: see docs/webhooks.md."
            raise _RefusedError(404, "There is no such hook.", hint)
        if self._failures.is_locked(peer):
            raise _RefusedError(429, "Too many wrong tokens or signatures.", "Wait a minute.")
        kind = _content_type(request)
        signed = own is not None and bool(own.signature)
        if not signed:
            self._check_token(request, own, settings, peer=peer)
        body = await _body(request, settings.size)
        if own is not None and signed:
            secret = self._secret(own.secret, f"webhooks.hooks.{name}.secret")
            headers, now = request.headers, self._clock.now() / 1000
            if why := signatures.fault(own.signature, secret, headers, body=body, now=now):
                self._failures.note(peer)
                raise _RefusedError(401, f"Not accepted: {why}.", "Both sides need the same secret.")
        payload = _parsed(body, kind)
        if own is not None:
            return await self._named(name, own, payload=payload, headers=request.headers)
        return await (self._wake(payload, request) if name == "wake" else self._agent(payload, request))

    def _check_token(
        self, request: Request, own: WebhookSettings | None, settings: WebhooksSettings, *, peer: str
    ) -> None:
        where = "webhooks.token"
        reference = settings.token
        if own is not None and own.secret:
            where, reference = f"webhooks.hooks.{request.path_params['name']}.secret", own.secret
        expected = self._secret(reference, where) if reference else ""
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        given = given.strip() if scheme.lower() == "bearer" else request.headers.get("x-limpet-token", "")
        if not given:
            hint = "Send it as `Authorization: Bearer TOKEN` or `X-Limpet-Token: TOKEN`, never in the address."
            raise _RefusedError(401, "A token is needed.", hint)
        if not expected or not hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode()):
            self._failures.note(peer)
            raise _RefusedError(401, "The token is wrong.", "It is webhooks.token, not that of the server.")

    async def _wake(self, payload: object, request: Request) -> Response:
        call = _converted(payload, WakeCall)
        self._check_agent(call.agent)
        event = f"{request.url.path}:{_event_id(_key_of(request))}"
        soon = call.mode == "now"
        return _accepted(await self._outside.wake(Nudge(event, "webhook wake", call.text, agent=call.agent, soon=soon)))

    async def _agent(self, payload: object, request: Request) -> Response:
        call = _converted(payload, AgentCall)
        self._check_agent(call.agent)
        to = f"{call.channel}:{call.to}" if call.channel else call.to
        if call.deliver and to and (why := self._outside.knows(to)):
            raise _RefusedError(422, "`channel` and `to` name no chat that is known.", why)
        sender = f"{' '.join(call.name.split())} (a program)" if call.name else "a program"
        run = Run(
            hook="agent",
            event=_event_id(_key_of(request)),
            text=f"[A program has sent this over a webhook.]\n{enclosed_payload(call.message)}",
            agent=call.agent,
            session="" if call.session == "isolated" else call.session,
            sender=sender,
            deliver=call.deliver,
            to=to,
            model=call.model,
            thinking=call.thinking,
            minutes=(call.timeout or 0.0) / 60,
        )
        return _accepted(await self._outside.run(run))

    async def _named(self, name: str, own: WebhookSettings, *, payload: object, headers: Mapping[str, str]) -> Response:
        challenge = _challenge(payload) if own.signature == "slack" else ""
        if challenge:
            return JSONResponse({"challenge": challenge}, headers=HEADERS)
        kind = signatures.event_kind(own.signature, headers, payload)
        if own.events and kind not in own.events:
            return JSONResponse({"ignored": kind[:100]}, headers=HEADERS)
        event = _event_id(signatures.delivery_id(own.signature, headers, payload))
        text = told(Event(name, kind, payload, headers), own.template, enclosed=enclosed_payload)
        if own.action == "wake":
            return _accepted(
                await self._outside.wake(Nudge(f"/hooks/{name}:{event}", f"webhook {name}", text, agent=own.agent))
            )
        run = Run(
            hook=name,
            event=event,
            text=text,
            agent=own.agent,
            session="" if own.session == "isolated" else own.session,
            deliver=own.deliver != "none" or bool(own.to),
            to=own.to,
            model=own.model,
            tools=own.tools,
            profile=own.profile,
            dollars=own.dollars,
            minutes=own.minutes,
        )
        return _accepted(await self._outside.run(run))

    def _check_agent(self, agent: str) -> None:
        if agent not in self._outside.agents:
            there = ", ".join(self._outside.agents)
            raise _RefusedError(422, f"There is no agent {agent[:64]!r}.", f"There are: {there}.")


def _accepted(taken: Taken) -> Response:
    return JSONResponse({"id": taken.id, "new": taken.is_new}, 202, headers=HEADERS)


def _content_type(request: Request) -> Literal["json", "form"]:
    said = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if said == "application/json" or (said.startswith("application/") and said.endswith("+json")):
        return "json"
    if said == "application/x-www-form-urlencoded":
        return "form"
    raise _RefusedError(415, "Only JSON and forms are taken.", "Send `Content-Type: application/json`.")


async def _body(request: Request, most: int) -> bytes:
    """The raw bytes, as they were signed."""
    try:
        return await read_body(request, most, seconds=BODY)
    except TooLargeError:
        raise _RefusedError(413, f"An event has at most {most:,} bytes.", "webhooks.size allows more.") from None
    except TimeoutError:
        raise _RefusedError(408, f"It has not come completely within {BODY:g} s.") from None


def _parsed(body: bytes, kind: Literal["json", "form"]) -> object:
    """What an event holds; of a form that has JSON in its field `payload`, that."""
    try:
        if kind == "json":
            return msgspec.json.decode(body)
        fields = dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=FIELDS))
        return msgspec.json.decode(fields["payload"]) if set(fields) == {"payload"} else fields
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise _RefusedError(400, "It cannot be read.", "Is it JSON, or a form, as its Content-Type says?") from None


def _converted(payload: object, kind: type[T]) -> T:
    try:
        return msgspec.convert(payload, kind)
    except msgspec.ValidationError as error:
        raise _RefusedError(422, str(error), "docs/webhooks.md lists the fields.") from None


def _event_id(given: str) -> str:
    """The name of an event, by which a repetition is known; a new one where it has none."""
    if len(given) > LONGEST_ID:
        raise _RefusedError(422, f"The id of an event has at most {LONGEST_ID} characters.")
    return given or new_id("e")


def _key_of(request: Request) -> str:
    return request.headers.get("idempotency-key", "").strip()


def _challenge(payload: object) -> str:
    """What Slack wants to hear back when the address is entered."""
    try:
        found = msgspec.convert(payload, _Challenge)
    except msgspec.ValidationError:
        return ""
    return found.challenge if found.type == "url_verification" else ""


class _Challenge(Struct):
    type: str
    challenge: str
