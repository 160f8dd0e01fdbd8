"""Signatures as the platforms make them, and every way in which they can be wrong."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from limpet.config.webhooks import Signature
from limpet.server.signatures import delivery_id, event_kind, fault

SECRET = "It's a Secret to Everybody"
BODY = b"Hello, World!"
NOW = 1_700_000_000


def digest(signed: bytes, secret: str = SECRET) -> str:
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def stripe(at: int = NOW, *more: str) -> str:
    return ",".join((f"t={at}", f"v1={digest(f'{at}.'.encode() + BODY)}", *more))


def slack(at: int = NOW) -> dict[str, str]:
    return {
        "x-slack-request-timestamp": str(at),
        "x-slack-signature": f"v0={digest(f'v0:{at}:'.encode() + BODY)}",
    }


GOOD: list[tuple[Signature, dict[str, str]]] = [
    # the example of GitHub's documentation
    (
        "github",
        {"x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"},
    ),
    ("gitlab", {"x-gitlab-token": SECRET}),
    ("stripe", {"stripe-signature": stripe()}),
    ("stripe", {"stripe-signature": f"t={NOW},v1={'0' * 64},v0=old,v1={digest(f'{NOW}.'.encode() + BODY)}"}),
    ("slack", slack()),
    ("slack", slack(NOW - 299)),
]


@pytest.mark.parametrize(("kind", "headers"), GOOD)
def test_what_a_platform_signs_is_accepted(kind: Signature, headers: dict[str, str]) -> None:
    assert fault(kind, SECRET, headers, body=BODY, now=NOW) == ""


@pytest.mark.parametrize(("kind", "headers"), GOOD)
def test_another_secret_body_or_none_is_not(kind: Signature, headers: dict[str, str]) -> None:
    assert fault(kind, "another", headers, body=BODY, now=NOW)
    assert fault(kind, "", headers, body=BODY, now=NOW)
    assert fault(kind, SECRET, {}, body=BODY, now=NOW)
    if kind != "gitlab":
        assert fault(kind, SECRET, headers, body=BODY + b" ", now=NOW)


@pytest.mark.parametrize(
    ("kind", "headers"),
    [
        ("stripe", {"stripe-signature": stripe(NOW - 301)}),
        ("stripe", {"stripe-signature": stripe(NOW + 301)}),
        ("stripe", {"stripe-signature": f"v1={digest(b'.' + BODY)}"}),
        ("stripe", {"stripe-signature": f"t=²,v1={digest('².'.encode() + BODY)}"}),
        ("stripe", {"stripe-signature": f"t={NOW},v0={digest(f'{NOW}.'.encode() + BODY)}"}),
        ("slack", slack(NOW - 301)),
        ("slack", {**slack(), "x-slack-request-timestamp": str(NOW - 1)}),
        ("github", {"x-hub-signature-256": digest(BODY)}),
        ("github", {"x-hub-signature-256": "sha256="}),
        ("", {}),
    ],
)
def test_old_times_and_other_forms_are_not_accepted(kind: Signature, headers: dict[str, str]) -> None:
    assert fault(kind, SECRET, headers, body=BODY, now=NOW)


@pytest.mark.parametrize(
    ("kind", "headers", "payload", "expected"),
    [
        ("github", {"x-github-delivery": "d1", "idempotency-key": "k"}, {}, "d1"),
        ("gitlab", {"x-gitlab-event-uuid": "u1"}, {}, "u1"),
        ("gitlab", {"x-gitlab-event-uuid": "u1", "idempotency-key": "k"}, {}, "k"),
        ("stripe", {"idempotency-key": "another"}, {"id": "evt_1"}, "evt_1"),
        ("slack", {"idempotency-key": "another"}, {"event_id": "Ev1"}, "Ev1"),
        ("slack", {}, {"event_id": 7}, ""),
        ("", {"idempotency-key": " k "}, [], "k"),
        ("", {}, {"id": "x"}, ""),
    ],
)
def test_an_event_is_known_by_the_name_its_platform_gives_it(
    kind: Signature, headers: dict[str, str], payload: object, expected: str
) -> None:
    assert delivery_id(kind, headers, payload) == expected


@pytest.mark.parametrize(
    ("kind", "headers", "payload", "expected"),
    [
        ("github", {"x-github-event": "pull_request"}, {}, "pull_request"),
        ("gitlab", {"x-gitlab-event": "Push Hook"}, {"object_kind": "push"}, "push"),
        ("stripe", {}, {"type": "invoice.paid"}, "invoice.paid"),
        ("slack", {}, {"type": "event_callback", "event": {"type": "app_mention"}}, "app_mention"),
        ("", {}, ["x"], ""),
    ],
)
def test_what_sort_of_event_it_is(kind: Signature, headers: dict[str, str], payload: object, expected: str) -> None:
    assert event_kind(kind, headers, payload) == expected
