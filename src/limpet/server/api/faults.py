"""What went wrong, as the status and code that programs know."""

from __future__ import annotations

from limpet import errors
from limpet.errors import LimpetError
from limpet.server.api.asks import Fault

_STATUS: tuple[tuple[type[LimpetError], int, str], ...] = (
    (errors.InputError, 400, "invalid_input"),
    (errors.BudgetError, 402, "insufficient_quota"),
    (errors.UserError, 503, "not_set_up"),
    (errors.RateLimitError, 429, "rate_limit_exceeded"),
    (errors.StalledError, 504, "timeout"),
    (errors.BillingError, 402, "insufficient_quota"),
    (errors.ContextOverflowError, 400, "context_length_exceeded"),
    (errors.RequestError, 400, "refused_upstream"),
    (errors.ModelError, 502, "upstream_error"),
    (errors.LimpetError, 503, "unavailable"),
)
"""The first that fits."""


def fault_of(error: LimpetError) -> Fault:
    """What an error means to a program."""
    return fault_for(type(error), error.present())


def fault_for(kind: type[LimpetError], text: str) -> Fault:
    status, code = next((status, code) for one, status, code in _STATUS if issubclass(kind, one))
    return Fault(status, text, code=code, again=60 if status in (429, 503) else 0)
