"""The error tree. Each class says what the loop does with it.

LimpetError
├── UserError                 tell the user what to do; nothing was lost          exit 2
│   ├── ConfigError           the configuration is wrong: names file, line, key
│   ├── NoModelError          no model at hand: names the ways to get one
│   ├── WorkspaceError        the workspace is a file, read-only, a dangling link …
│   ├── BudgetError           the owner's budget would be exceeded: names it and what is spent
│   └── InputError            what was passed in cannot be used
├── ModelError                a request to a model failed                         exit 3
│   ├── RetryableError        ask again, after a while, elsewhere
│   │   ├── RateLimitError    … not before `retry_after` seconds
│   │   ├── StalledError      … no (useful) byte within its deadline
│   │   └── UpstreamError     … the provider failed: 5xx, cut stream, unreadable answer, error in a 200
│   ├── CredentialError       this key will not do (401, 403): fail over to another, tell the user
│   ├── BillingError          no credit left (402): fail over to another, tell the user
│   ├── ContextOverflowError         the prompt is too large: compact, then ask again
│   ├── RequestError          the provider refuses the request itself (400, 404, 422): fix it, never repeat it
│   │   └── ParameterError    … because of one field: leave that out, remember it, ask again
│   ├── NoCandidateError      every model and key failed or rests: tell the user each reason
│   └── UnreachableError      no connection, or a TLS failure: fail over, tell the user the address
├── ToolError                 tell the model: becomes an error result of the call
│   ├── NetworkRefusedError   an address that tools must not reach; the owner can allow it
│   ├── ArgumentsError        arguments are not what the schema says: lists every fault
│   ├── PathRefusedError      a path leads out of its roots
│   ├── PolicyError           not allowed, or not approved
│   └── SandboxError          the command cannot be isolated as demanded
├── StoreError                nothing was written; says which file and why        exit 4
│   ├── StoreBusyError        another process holds the database: names it
│   ├── StoreFullError        no space left
│   ├── StoreNewerError       the database was written by a newer Limpet
│   └── CommitUnknownError    an I/O error at COMMIT and the outcome could not be read back
├── ChannelError              a chat platform: try again, as the class says
│   ├── NotReadyError         no connection yet: wait for it, this was no attempt
│   ├── NotAcceptedError      … it certainly did not arrive: again, not before `retry_after` seconds
│   ├── RefusedError          … it never will (chat gone, token wrong): tell the owner
│   └── UnsureError           … it may have arrived: never blindly send it again
├── LeaseError                stop: the session belongs to somebody else now
│   ├── LeaseHeldError        … a living process has it: hand it your message instead
│   └── LeaseLostError        … our epoch is over: nothing of ours is written any more
├── TurnWaits                 the owner has to decide first: end without an outcome, go on when he has
└── TurnStopped               the owner said stop; the log is valid               exit 130
"""

from __future__ import annotations

from typing import Literal


class LimpetError(Exception):
    """Root of the tree. `str(error)` is a sentence for people; `hint` says what to do next."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def present(self) -> str:
        """The whole message for a terminal or a chat."""
        return f"{self}\n{self.hint}" if self.hint else str(self)


class UserError(LimpetError):
    exit_code = 2


class ConfigError(UserError):
    pass


class NoModelError(UserError):
    pass


class WorkspaceError(UserError):
    pass


class BudgetError(UserError):
    pass


class InputError(UserError):
    pass


class ModelError(LimpetError):
    """A request to a model failed. `provider` names whose, `status` is the HTTP status or 0."""

    exit_code = 3

    def __init__(self, message: str, *, provider: str = "", status: int = 0, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.provider = provider
        self.status = status

    def brief(self) -> str:
        """What failed, and where, without the hint and as the beginning of a sentence."""
        where = f"{self.provider}: " if self.provider else ""
        return where + str(self).rstrip(".")

    def present(self) -> str:
        where = f"{self.provider}: " if self.provider else ""
        return where + super().present()


class RetryableError(ModelError):
    pass


class RateLimitError(RetryableError):
    """429 or its like. `retry_after` is in seconds, None when the provider did not say."""

    def __init__(
        self, message: str, *, provider: str = "", status: int = 0, hint: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message, provider=provider, status=status, hint=hint)
        self.retry_after = retry_after


class StalledError(RetryableError):
    pass


class UpstreamError(RetryableError):
    pass


class CredentialError(ModelError):
    pass


class BillingError(ModelError):
    pass


class ContextOverflowError(ModelError):
    """The prompt does not fit. `limit` is the window in tokens the provider named, 0 when it named none."""

    def __init__(self, message: str, *, provider: str = "", status: int = 0, hint: str = "", limit: int = 0) -> None:
        super().__init__(message, provider=provider, status=status, hint=hint)
        self.limit = limit


class RequestError(ModelError):
    pass


class ParameterError(RequestError):
    """`name` is the field that the provider does not take, or (`scope`) only not the value that was sent."""

    def __init__(
        self,
        message: str,
        *,
        name: str,
        scope: Literal["field", "value"] = "field",
        provider: str = "",
        status: int = 0,
        hint: str = "",
    ) -> None:
        super().__init__(message, provider=provider, status=status, hint=hint)
        self.name = name
        self.scope: Literal["field", "value"] = scope


class NoCandidateError(ModelError):
    pass


class UnreachableError(ModelError):
    pass


class ToolError(LimpetError):
    """Raised by a tool; the text goes to the model as an error result. `external`: strangers had a hand in the text."""

    external = False


class NetworkRefusedError(ToolError):
    pass


class ArgumentsError(ToolError):
    pass


class PathRefusedError(ToolError):
    pass


class PolicyError(ToolError):
    pass


class SandboxError(ToolError):
    pass


class StoreError(LimpetError):
    exit_code = 4


class StoreBusyError(StoreError):
    pass


class StoreFullError(StoreError):
    pass


class StoreNewerError(StoreError):
    pass


class CommitUnknownError(StoreError):
    pass


class ChannelError(LimpetError):
    """A chat platform failed."""


class NotReadyError(ChannelError):
    pass


class NotAcceptedError(ChannelError):
    def __init__(self, message: str, *, retry_after: float = 0.0, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class RefusedError(ChannelError):
    pass


class UnsureError(ChannelError):
    pass


class LeaseError(LimpetError):
    exit_code = 5


class LeaseHeldError(LeaseError):
    """`owner` names the living process that has the session."""

    def __init__(self, message: str, *, owner: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.owner = owner


class LeaseLostError(LeaseError):
    pass


class TurnWaits(LimpetError):
    """`approvals` are the ids of what waits for the owner's word."""

    def __init__(self, approvals: tuple[str, ...]) -> None:
        super().__init__("The owner has to decide first.")
        self.approvals = approvals


class TurnStopped(LimpetError):
    exit_code = 130


def class_of(name: str) -> type[LimpetError]:
    """The error class called `name`, as the log of a failed turn names it; the root of the tree for any other."""
    found = globals().get(name)
    return found if isinstance(found, type) and issubclass(found, LimpetError) else LimpetError


def exit_code_of(name: str) -> int:
    """The exit code of the error class called `name`; 1 for one there is not."""
    return class_of(name).exit_code
