"""Names and ids as services take them, whatever a model made up; and where and how a service is asked.

A changed id carries a hash of the original: it is the same in every request, and two ids never become one.
"""

from __future__ import annotations

import hashlib
import re
from urllib.parse import quote

from limpet.types.profile import Profile

NO_TEXT = "(no text)"
_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_OPENAI_ID = 64
_SIGNS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def tool_name(name: str) -> str:
    """A name that providers take: letters, digits, `_` and `-`, at most 64."""
    return _NAME.sub("_", name)[:64] or "unknown"


def call_id(id: str) -> str:
    """An id as Anthropic, Bedrock and Gemini take it: `^[a-zA-Z0-9_-]{1,64}$`."""
    if _ID.fullmatch(id):
        return id
    return f"{_NAME.sub('_', id)[:48]}_{_digest(id).hex()[:12]}"


def chat_id(id: str, length: int) -> str:
    """An id of Chat Completions: of exactly `length` letters and digits (Mistral: 9), else as it is up to 64."""
    if not length:
        return id if len(id) <= _OPENAI_ID else call_id(id)
    if len(id) == length and id.isascii() and id.isalnum():
        return id
    number = int.from_bytes(_digest(id), "big")
    signs: list[str] = []
    for _ in range(length):
        number, rest = divmod(number, len(_SIGNS))
        signs.append(_SIGNS[rest])
    return "".join(signs)


def _digest(id: str) -> bytes:
    return hashlib.sha256(id.encode("utf-8", "surrogatepass")).digest()


def address_of(profile: Profile, path: str) -> str:
    """Where to ask: the profile's base, its own path or `path` with `{model}` filled in, and its query."""
    where = (profile.path or path).replace("{model}", quote(profile.model, safe=""))
    query = f"{'&' if '?' in where else '?'}{profile.query}" if profile.query else ""
    return profile.base_url.rstrip("/") + where + query


def key_of(profile: Profile, key: str, *, header: str = "") -> dict[str, str]:
    """The header that carries the key: the profile's, the wire's usual `header`, or a bearer token."""
    if not key:
        return {}
    name = profile.key_header or header
    return {name: key} if name else {"Authorization": f"Bearer {key}"}
