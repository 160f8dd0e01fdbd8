"""What services have taught: fields of requests that they refuse, and how large their window is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import structs

from limpet.errors import ParameterError
from limpet.types.profile import Profile

Fields = dict[str, object]

OURS = (
    *("temperature", "top_p", "max_tokens", "max_completion_tokens", "max_output_tokens", "reasoning_effort"),
    *("reasoning", "thinking", "thinking_config", "thinking_level", "thinking_budget", "include_thoughts"),
    *("effort", "summary", "output_config", "chat_template_kwargs", "enable_thinking", "parallel_tool_calls"),
    *("stream_options", "include_usage", "prompt_cache_key", "tool_choice", "include", "store"),
    *("cache_control", "reasoning_content"),
)
"""What may be left out of a request; never what is asked: messages, tools, the model."""
_CONTAINERS = (
    *("generationconfig", "inferenceconfig", "additionalmodelrequestfields", "thinkingconfig"),
    *("reasoning", "outputconfig", "streamoptions", "chattemplatekwargs"),
)
_THINKING = ("thinkingconfig", "reasoningeffort", "thinking", "reasoning", "outputconfig", "enablethinking")
_SMALLEST_WINDOW = 1_024
"""Tokens. Who names less means something else."""


def _plain(name: str) -> str:
    """One name for `max_tokens` and `maxTokens`."""
    return name.replace("_", "").lower()


_OURS = frozenset(map(_plain, OURS))


def taught(profile: Profile, *, refused: Sequence[str], window: int = 0) -> Profile:
    """`profile` as its service wants it.

    Entries of `refused` are names of fields, or `name=value` with the value as JSON. A token parameter that is refused
    gives way to the other one.
    """
    names = {_plain(entry) for entry in refused if "=" not in entry}
    if profile.token_parameter == "max_tokens" and "maxtokens" in names:
        profile = structs.replace(profile, token_parameter="max_completion_tokens")
    elif profile.token_parameter == "max_completion_tokens" and "maxcompletiontokens" in names:
        profile = structs.replace(profile, token_parameter="max_tokens")
    if "cachecontrol" in names:
        profile = structs.replace(profile, cache_ttl=0)
    if "reasoningcontent" in names:
        profile = structs.replace(profile, reasoning_echo="none")
    if window >= _SMALLEST_WINDOW and (not profile.window or window < profile.window):
        profile = structs.replace(profile, window=window)
    return structs.replace(profile, refused=tuple(refused))


def without(fields: Fields, refused: Sequence[str]) -> Fields:
    """`fields` of a request without those that the service refuses, also inside the objects that hold settings."""
    if not refused:
        return fields
    entries = [entry.partition("=") for entry in refused]
    names = {_plain(name) for name, equals, _ in entries if not equals}
    return _without(fields, names, {(_plain(name), value) for name, equals, value in entries if equals})


def _without(fields: Fields, names: set[str], values: set[tuple[str, str]]) -> Fields:
    kept: Fields = {}
    valued = {name for name, _ in values}
    for name, value in fields.items():
        plain = _plain(name)
        if plain in names or (plain in valued and (plain, _json(value)) in values):
            continue
        if plain in _CONTAINERS and isinstance(value, dict):
            value = _without(msgspec.convert(value, Fields), names, values)
            if not value:
                continue
        kept[name] = value
    return kept


def lesson_of(refused: ParameterError, body: Sequence[bytes], profile: Profile) -> str:
    """The entry of `Profile.refused` that this refusal of `body` teaches; empty when it is not ours to leave out."""
    name = _plain(refused.name)
    if name not in _OURS or (profile.wire == "anthropic" and name == "maxtokens"):
        return ""
    if name == "cachecontrol":
        return refused.name if profile.cache_ttl else ""
    if name == "reasoningcontent":
        return refused.name if profile.reasoning_echo != "none" else ""
    fields = msgspec.json.decode(b"".join(body), type=Fields)
    names = (name, *_THINKING) if name in _THINKING else (name,)  # services name what they make of it
    found = next((found for one in names if (found := _sent(fields, one)) is not None), None)
    if found is None:
        return ""
    written, value = found
    return written if refused.scope == "field" else f"{written}={_json(value)}"


def _sent(fields: Mapping[str, object], name: str) -> tuple[str, object] | None:
    """The field called `name` as it was written, and its value."""
    for written, value in fields.items():
        if _plain(written) == name:
            return written, value
        if _plain(written) in _CONTAINERS and isinstance(value, dict):
            found = _sent(msgspec.convert(value, Fields), name)
            if found is not None:
                return found
    return None


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode("utf-8", "replace")
