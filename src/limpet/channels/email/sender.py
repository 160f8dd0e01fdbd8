"""Who sent a mail: a person or a machine, and whether the receiving server has checked the address (RFC 8601)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

UNVERIFIED = "unverified:"
"""Before the address of somebody that nobody has checked: the `From` of a mail can be anything."""
_MACHINES = frozenset(("mailer-daemon", "postmaster", "bounce", "bounces"))
_BULK = frozenset(("bulk", "junk", "list", "auto_reply"))
_MARKS = ("List-Id", "List-Post", "List-Unsubscribe", "X-Autoreply", "X-Autorespond", "X-Auto-Reply")
_PASS = re.compile(r"\s*(dmarc|dkim|spf)\s*(?:/\s*\d+\s*)?=\s*pass(?![\w-])", re.IGNORECASE)
_PROPERTY = re.compile(r"([\w-]+\.[\w-]+)\s*=\s*(\S+)")
_OF = {"dmarc": ("header.from",), "dkim": ("header.d", "header.i"), "spf": ("smtp.mailfrom", "smtp.mail")}


def automatic(header: Callable[[str], str], address: str, own: str) -> str:
    """Why a mail is to have no answer: a machine or a list sent it, or we did (RFC 3834). Empty: a person did."""
    if address == own:
        return "it is our own"
    if address.partition("@")[0] in _MACHINES or header("Return-Path").strip() == "<>":
        return "it tells of a failed delivery"
    told = header("Auto-Submitted").partition(";")[0].strip().lower()
    if told not in ("", "no"):
        return f"it was sent by a machine ({told})"
    if header("Precedence").strip().lower() in _BULK:
        return "it was sent in bulk"
    if header("Content-Type").strip().lower().startswith("multipart/report"):
        return "it is a report"
    return next((f"it has the header {mark}" for mark in _MARKS if header(mark)), "")


def verified(results: Sequence[str], authserv: str, address: str) -> bool:
    """Whether the server `authserv` has found that `address` is no forgery: DMARC, or DKIM or SPF of its domain.

    `results` are the fields `Authentication-Results`, from the top. Only the first counts, for a server puts its own on
    top; those below may have come with the mail.
    """
    domain = address.rpartition("@")[2]
    if not authserv or not results or not domain:
        return False
    server, *found = _bare(results[0]).split(";")
    if server.split()[:1] != [authserv.lower()]:
        return False
    return any(_vouches(one, domain) for one in found)


def _vouches(result: str, domain: str) -> bool:
    method = _PASS.match(result)
    if method is None:
        return False
    values = [value for name, value in _PROPERTY.findall(result) if name in _OF[method[1]]]
    return bool(values) and all(value.rpartition("@")[2].rstrip(".") == domain for value in values)


def _bare(field: str) -> str:
    """The field in lower case without comments; what is quoted cannot look like more than one word."""
    out: list[str] = []
    depth, quoted, skipped = 0, False, False
    for one in field.lower():
        if skipped:
            skipped = False
            one = "_"
        elif one == "\\" and (quoted or depth):
            skipped = True
            continue
        elif one == '"' and not depth:
            quoted = not quoted
            continue
        elif not quoted and one in "()":
            depth = max(0, depth + (1 if one == "(" else -1))
            one = " "
        if depth == 0:
            out.append("_" if quoted and not (one.isalnum() or one in "@.-") else one)
    return "".join(out)
