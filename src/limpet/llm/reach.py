"""Whether a model service is reached and takes a key, without asking a model anything: its list of models is read."""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime
from typing import Literal

from msgspec import Struct

from limpet.types.profile import Profile, Wire

PATIENCE = 8.0
"""Seconds."""

State = Literal["works", "refused", "limited", "unreachable", "unsure"]


class Reached(Struct, frozen=True):
    """`text` says how it went. `skew` is how many seconds this machine's clock is ahead of the service's, None where
    it did not say. `unsure`: something answers, and the key was not looked at.
    """

    state: State
    text: str
    skew: float | None = None


async def reach(profile: Profile, key: str) -> Reached:
    """Read the list of models at the profile's address."""
    import aiohttp

    if profile.wire == "bedrock":
        return Reached("unsure", "signed requests are not tried here")
    timeout = aiohttp.ClientTimeout(total=PATIENCE, sock_connect=PATIENCE / 2)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, trust_env=True) as session,
            session.get(_address(profile), headers=_headers(profile.wire, key), allow_redirects=False) as response,
        ):
            return _said(response.status, response.headers.get("Date", ""))
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        return Reached("unreachable", f"{type(error).__name__}: {error}".rstrip(": "))


def _address(profile: Profile) -> str:
    base = profile.base_url.rstrip("/")
    return f"{base}/v1/models" if profile.wire == "anthropic" and not base.endswith("/v1") else f"{base}/models"


def _headers(wire: Wire, key: str) -> dict[str, str]:
    if not key:
        return {}
    if wire == "anthropic":
        return {"x-api-key": key, "anthropic-version": "2023-06-01"}
    if wire == "gemini":
        return {"x-goog-api-key": key}
    return {"Authorization": f"Bearer {key}"}


def _said(status: int, date: str) -> Reached:
    skew = _skew(date)
    if status == 200:
        return Reached("works", "reached, the key is taken", skew)
    if status in (400, 401, 403):  # Gemini says 400 of a wrong key
        return Reached("refused", f"the key is refused (status {status})", skew)
    if status in (402, 429):
        return Reached("limited", f"reached; no credit, or too many requests (status {status})", skew)
    if status >= 500:
        return Reached("unreachable", f"the service fails (status {status})", skew)
    return Reached("unsure", f"something answers (status {status}), but lists no models", skew)


def _skew(date: str) -> float | None:
    try:
        return time.time() - parsedate_to_datetime(date).timestamp()
    except (TypeError, ValueError):
        return None
