"""What an agent is told of an event: the owner's template, with what strangers wrote put into it between marks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import msgspec

from limpet.config.table import is_list, is_table
from limpet.config.webhooks import FIELD, PATH

HEAD = "[The hook {name} has delivered an event{kind}.]"
WHOLE = "It holds:"
LONGEST_VALUE = 8_000
LONGEST_PAYLOAD = 60_000
"""Characters of one value in a template, and of a payload without one."""
MISSING = "[there is no {path}]"


class Event(msgspec.Struct, frozen=True):
    """One event: `kind` is what its platform calls it."""

    name: str
    kind: str
    payload: object
    headers: Mapping[str, str]


def told(event: Event, template: str, *, enclosed: Callable[[str], str]) -> str:
    """The text for the agent. `enclosed` puts marks around what strangers wrote."""
    head = HEAD.format(name=event.name, kind=f" ({enclosed(event.kind[:100])})" if event.kind else "")
    if not template.strip():
        whole = msgspec.json.format(msgspec.json.encode(event.payload), indent=1).decode()
        return f"{head}\n{WHOLE}\n{enclosed(_cut(whole, LONGEST_PAYLOAD))}"

    def put(found: re.Match[str]) -> str:
        return _value(event, found[1], enclosed)

    return f"{head}\n{FIELD.sub(put, template.strip())}"


def _value(event: Event, path: str, enclosed: Callable[[str], str]) -> str:
    """What stands at `payload.a.0.b` or `header.x-name`; where there is nothing, it says so."""
    match = PATH.fullmatch(path)
    if match is None:
        return MISSING.format(path=path)
    steps = match[2].split(".")[1:]
    if match[1] == "header":
        found: object = event.headers.get(".".join(steps).lower())
    else:
        found = _at(event.payload, steps)
    if found is None:
        return MISSING.format(path=path)
    text = found if isinstance(found, str) else msgspec.json.encode(found).decode()
    return enclosed(_cut(text, LONGEST_VALUE))


def _at(payload: object, steps: list[str]) -> object:
    for step in steps:
        if is_table(payload):
            payload = payload.get(step)
        elif is_list(payload):
            payload = payload[int(step)] if step.isdecimal() and int(step) < len(payload) else None
        else:
            return None
    return payload


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}… [cut, {len(text):,} characters in all]"
