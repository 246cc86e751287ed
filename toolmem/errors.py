"""The errors of toolmem.

ToolMemError
├── RequestError          an argument or a request is invalid; `field` names it
├── ConfigError           the configuration is wrong; `problems` has a line for each error
│   └── FlowSyntaxError   a flow expression cannot be read
├── ModelError            a model, judge or writer gave no usable answer
│   └── BudgetReached     the next request would exceed the budget
├── CallDenied            the guard stopped a call; `decision` says why
├── RunCancelled          a branch of a flow stopped, because the run was cancelled
├── ServiceError          a service was not reached or failed; `status` 0: not reached
└── StoreError
    ├── StoreUnavailable  cannot be opened, locked by another process, moved, disk full
    │   └── StoreClosed   closed, or inherited by a forked process
    ├── StoreVersionError written by another version of toolmem
    └── Conflict          changed since it was read; read again and decide again
"""

from collections.abc import Sequence
from typing import Any


class ToolMemError(Exception):
    """Every error that toolmem raises on purpose."""


class RequestError(ToolMemError):
    """An argument or a request is invalid. `field`: the name of the argument, or ""."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


def wrong(field: str, problem: str) -> RequestError:
    """Make the error of a wrong argument, which its message names first."""
    return RequestError(f"{field}: {problem}", field)


class ConfigError(ToolMemError):
    """The configuration is wrong. `problems`: a line for each error."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)


class FlowSyntaxError(ConfigError):
    """A flow expression cannot be read."""


class ModelError(ToolMemError):
    """A model, judge or writer gave no usable answer. `fatal`: further requests would fail too."""

    def __init__(self, message: str, *, fatal: bool = False) -> None:
        super().__init__(message)
        self.fatal = fatal


class BudgetReached(ModelError):
    """The next request to a model would exceed the configured budget."""

    def __init__(self, message: str) -> None:
        super().__init__(message, fatal=True)


class CallDenied(ToolMemError):
    """The guard stopped a call before it ran. `decision` says why."""

    def __init__(self, decision: Any) -> None:
        super().__init__(decision.reason)
        self.decision = decision  # a toolmem.models.decisions.Decision


class RunCancelled(ToolMemError):
    """This branch of a flow stopped because the whole run was cancelled."""


class ServiceError(ToolMemError):
    """A toolmem service was not reached (`status` 0), refused a request, or failed."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class StoreError(ToolMemError):
    """A store could not be read or written."""


class StoreUnavailable(StoreError):
    """The store cannot be opened or written now."""


class StoreClosed(StoreUnavailable):
    """The store was closed, or belongs to the process that this one was forked from."""


class StoreVersionError(StoreError):
    """The store was written by another version of toolmem."""


class Conflict(StoreError):
    """An entry changed since it was read. `is_final`: do not retry; read it and decide again."""

    def __init__(self, message: str, *, is_final: bool = False) -> None:
        super().__init__(message)
        self.is_final = is_final
