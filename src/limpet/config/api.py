"""Settings of the API that other programs use (`[api]`)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct


class ApiSettings(Struct, frozen=True):
    """`gone`: what becomes of a turn whose program has left before its answer came. `minutes` is how long a request
    waits for its answer; the turn goes on. `size` is the bytes of one request."""

    gone: Literal["finish", "stop"] = "finish"
    minutes: Annotated[float, Meta(gt=0)] = 10.0
    size: Annotated[int, Meta(ge=1)] = 30_000_000
