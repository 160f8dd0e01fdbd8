"""Signatures of platforms over the raw body of an event, and what each platform calls the event.

| | signed | header | |
|---|---|---|---|
| GitHub | body | `X-Hub-Signature-256: sha256=HEX` | id: `X-GitHub-Delivery` |
| GitLab | nothing: the secret itself is shown | `X-Gitlab-Token` | id: `X-Gitlab-Event-UUID` |
| Stripe | `TIME.body` | `Stripe-Signature: t=TIME,v1=HEX[,v1=HEX]` | id: `id` in the body |
| Slack | `v0:TIME:body` | `X-Slack-Signature: v0=HEX`, `X-Slack-Request-Timestamp` | id: `event_id` in the body |
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

from limpet.config.table import is_table
from limpet.config.webhooks import Signature

TOLERANCE = 300
"""Seconds by which a signed time may differ from ours (Stripe and Slack recommend it)."""


def fault(kind: Signature, secret: str, headers: Mapping[str, str], *, body: bytes, now: float) -> str:
    """Why an event is not signed as it has to be; empty when it is. `now` in seconds, names of headers in lower case.

    All comparisons take the same time whatever is wrong.
    """
    if not secret:
        return "no secret is configured to check it with"
    match kind:
        case "github":
            given = headers.get("x-hub-signature-256", "")
            return _differs((given,), f"sha256={_digest(secret, body)}", "X-Hub-Signature-256")
        case "gitlab":
            return _differs((headers.get("x-gitlab-token", ""),), secret, "X-Gitlab-Token")
        case "stripe":
            parts = [one.strip().partition("=") for one in headers.get("stripe-signature", "").split(",")]
            at = next((value for name, _, value in parts if name == "t"), "")
            given = tuple(value for name, _, value in parts if name == "v1")
            signed = _digest(secret, at.encode() + b"." + body)
            return _late(at, now) or _differs(given, signed, "Stripe-Signature")
        case "slack":
            at = headers.get("x-slack-request-timestamp", "")
            signed = f"v0={_digest(secret, b'v0:' + at.encode() + b':' + body)}"
            return _late(at, now) or _differs((headers.get("x-slack-signature", ""),), signed, "X-Slack-Signature")
        case _:
            return "no signature is expected"


def _digest(secret: str, signed: bytes) -> str:
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def _differs(given: tuple[str, ...], expected: str, header: str) -> str:
    if not any(given):
        return f"the header {header} is missing"
    matches = [hmac.compare_digest(one.encode("utf-8", "replace"), expected.encode()) for one in given]
    return "" if any(matches) else f"the header {header} is wrong"


def _late(at: str, now: float) -> str:
    if not at.isascii() or not at.isdigit() or len(at) > 12:
        return "the signature has no time"
    if abs(now - int(at)) <= TOLERANCE:
        return ""
    return f"it was signed more than {TOLERANCE} s ago, or a clock is wrong"


def delivery_id(kind: Signature, headers: Mapping[str, str], payload: object) -> str:
    """The name by which a repetition is known: the platform's, a signed one where there is; else `Idempotency-Key`.

    GitLab repeats a delivery under the same `Idempotency-Key`; events of one cause share its UUID.
    """
    given = headers.get("idempotency-key", "").strip()
    match kind:
        case "github":
            return headers.get("x-github-delivery", "") or given
        case "gitlab":
            return given or headers.get("x-gitlab-event-uuid", "")
        case "stripe":
            return _text(payload, "id") or given
        case "slack":
            return _text(payload, "event_id") or given
        case _:
            return given


def event_kind(kind: Signature, headers: Mapping[str, str], payload: object) -> str:
    """What the platform calls this sort of event; empty where it says nothing."""
    match kind:
        case "github":
            return headers.get("x-github-event", "")
        case "gitlab":
            return _text(payload, "object_kind") or headers.get("x-gitlab-event", "")
        case "slack":
            return _text(_field(payload, "event"), "type") or _text(payload, "type")
        case _:
            return _text(payload, "type")


def _field(payload: object, name: str) -> object:
    return payload.get(name) if is_table(payload) else None


def _text(payload: object, name: str) -> str:
    found = _field(payload, name)
    return found if isinstance(found, str) else ""
