"""JSON of unknown shape, looked at field by field: what is wrong with it becomes a refusal."""

from __future__ import annotations

import re

import msgspec


class Refused(Exception):
    """The request breaks a rule of the service."""

    def __init__(self, message: str, *, status: int = 400, type: str = "invalid_request_error", code: str = "") -> None:
        super().__init__(message)
        self.headers: dict[str, str] = {}
        self.status = status
        self.type = type
        self.code = code


def need(condition: object, message: str) -> None:
    if not condition:
        raise Refused(message)


def fields(value: object, where: str) -> dict[str, object]:
    try:
        return msgspec.convert(value, dict[str, object])
    except msgspec.ValidationError:
        raise Refused(f"{where}: expected an object") from None


def items(value: object, where: str) -> list[object]:
    try:
        return msgspec.convert(value, list[object])
    except msgspec.ValidationError:
        raise Refused(f"{where}: expected an array") from None


def text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise Refused(f"{where}: expected a string")
    return value


def name(value: object, where: str) -> str:
    found = text(value, where)
    need(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", found), f"{where}: does not match ^[a-zA-Z0-9_-]{{1,64}}$")
    return found
