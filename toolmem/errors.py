"""Everything that toolmem raises on purpose.

    ToolMemError
    ├── Refused                  nothing was done: the input is wrong (exit code 2)
    │   ├── ConfigError          configuration: all problems at once
    │   │   └── FlowSyntaxError  a `flow_content` that cannot be read: line, column, fragment
    │   ├── RequestError         a request: the field and what would be right
    │   │   └── NoteRefused      a note of a demand: each problem, so that it can be written anew
    │   ├── NotProvided          a flow or op of another toolkit that toolmem does not have
    │   └── StoreUntrusted       a store that was found and that this user neither made nor trusts
    ├── RecordError              one record of a good request is bad; the others go on
    ├── CallDenied               the guard stopped a tool call before it ran: its decision
    ├── LiftProposed             a rule binds less only where its user wants it: nothing changed (exit code 1)
    ├── StoreError               the store cannot do it
    │   ├── StoreUnavailable     cannot be opened or reached
    │   │   └── StoreDamaged     its file holds what no toolmem wrote
    │   ├── StoreVersionError    written by another version of toolmem
    │   ├── StoreClosed          used after close, or after a fork
    │   ├── Conflict             compare-and-swap lost: somebody else wrote first
    │   └── EmbedderMismatch     the store's vectors come from another embedder
    ├── ModelError               a model did not give a usable answer (temporary or not)
    │   ├── ModelUnreachable     no answer: no connection, a cut one, a time-out
    │   ├── ModelOverloaded      it cannot serve now: 429, 5xx
    │   ├── ModelRefused         it will not serve this request: a bad one, too long
    │   │   ├── ModelDenied      nor any other: wrong key, no credit, unknown model or address
    │   │   └── ContentFiltered  the provider's content filter stopped it
    │   ├── ReplyBroken          it answered 200, and there is no reply in it: not JSON, an error
    │   │   ├── ReplyEmpty       a reply without text
    │   │   └── ReplyTruncated   a reply that was cut off at the token limit
    │   ├── ReplyUnreadable      it answered, but not in the form that was asked for
    │   └── BudgetReached        the next request would exceed the budget (exit code 3)
    ├── ServiceError             toolmem's own HTTP service, as a client sees it: it failed, or something else answered
    │   ├── ServiceUnreachable   no answer: nothing listens, the connection was cut, a time-out, too busy
    │   ├── ServiceDenied        it lets nobody in without a token: none was sent, or the wrong one
    │   └── ClientClosed         the client was used after it was closed; nothing was sent
    └── RunStopped               a run that went wrong throughout was stopped (`max_errors`)

A message says what is wrong, where, and what would be right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolmem.guard.decision import GuardDecision

_RAISED_BY = "raised by the op "


def note_op(error: Exception, op: str, flow: str) -> None:
    """Note which op of which flow raised an error that is none of toolmem's: a defect of the op, or of its params."""
    if not isinstance(error, ToolMemError) and not raised_by(error):
        error.add_note(f"{_RAISED_BY}{op!r} in the flow {flow!r}")


def raised_by(error: BaseException) -> str:
    """The words "raised by the op 'my_op' in the flow 'my_flow'"; "" where no op raised it."""
    return next((note for note in getattr(error, "__notes__", ()) if note.startswith(_RAISED_BY)), "")


class ToolMemError(Exception):
    """Base of every error that toolmem raises on purpose."""


class Refused(ToolMemError):
    """The input is wrong; nothing was done and nothing was spent."""


class ConfigError(Refused):
    """The configuration cannot be used. `problems` holds every problem found, one line each."""

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems: list[str] = [problems] if isinstance(problems, str) else list(problems)
        super().__init__("\n".join(self.problems))


class FlowSyntaxError(ConfigError):
    """A flow expression that cannot be read."""


class RequestError(Refused):
    """A request that cannot be served. `field` names the part that is wrong."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        self.field = field
        super().__init__(message)


class NoteRefused(RequestError):
    """A note of a demand that is not kept. `problems`: (place in the note, what to change), as they were found."""

    def __init__(self, problems: Sequence[tuple[str, str]]) -> None:
        self.problems = list(problems)
        told = "; ".join(f"`{place}`: {problem}" for place, problem in self.problems)
        super().__init__(told, field=self.problems[0][0].partition("[")[0])


class NotProvided(Refused):
    """A flow or op that other toolkits have and toolmem does not."""


class StoreUntrusted(Refused):
    """What this store holds may reach no prompt: it was found, and this user neither made nor trusts it."""


class RecordError(ToolMemError):
    """One record cannot be used. `index` is its position in the request, from 0."""

    def __init__(self, message: str, *, index: int | None = None, tool_name: str | None = None) -> None:
        self.index = index
        self.tool_name = tool_name
        super().__init__(message)


class CallDenied(ToolMemError):
    """A tool call was stopped before it ran. Its text is the reason, which an agent may be shown as the tool's result.

    `decision`: what stands against the call, and who says so.
    """

    def __init__(self, decision: GuardDecision) -> None:
        self.decision = decision
        super().__init__(decision.reason)


class LiftProposed(ToolMemError):
    """What was asked would let a rule bind less, and only its user decides that: nothing was changed.

    `code`: what the user says to accept it, as `lift CODE`; "" where no proposal could be noted.
    """

    def __init__(self, message: str, *, rule_id: str, code: str = "") -> None:
        self.rule_id = rule_id
        self.code = code
        super().__init__(message)


class StoreError(ToolMemError):
    """The store could not do what it was asked."""


class StoreUnavailable(StoreError):
    """The store cannot be opened or reached."""


class StoreDamaged(StoreUnavailable):
    """The store's file, at `path`, holds what no toolmem wrote: a flipped byte, a page of something else."""

    def __init__(self, message: str, *, path: str = "") -> None:
        self.path = path
        super().__init__(message)


class StoreVersionError(StoreError):
    """The store was written by a version of toolmem that this one cannot read."""


class StoreClosed(StoreError):
    """The store was used after it was closed, or in a forked child."""


class Conflict(StoreError):
    """A compare-and-swap lost: the record changed since it was read. Read again and decide again."""


class EmbedderMismatch(StoreError):
    """The vectors in the store come from another embedder; mixing them would rank nonsense."""


class ModelError(ToolMemError):
    """A model gave no usable answer.

    `temporary`: another attempt may succeed (dropped connection, 429, 5xx, time-out).
    `fatal`: no request to this model can succeed (wrong key, unknown model, budget spent), so a run stops asking.
    """

    def __init__(
        self, message: str, *, temporary: bool = False, fatal: bool = False, retry_after: float | None = None
    ) -> None:
        self.temporary = temporary
        self.fatal = fatal
        self.retry_after = retry_after  # seconds that the server asked everybody to wait
        super().__init__(message)


class ModelUnreachable(ModelError):
    """No answer came: no connection, one that was cut, or a time-out. Temporary where nothing else is said."""

    def __init__(self, message: str, *, temporary: bool = True, fatal: bool = False) -> None:
        super().__init__(message, temporary=temporary, fatal=fatal)


class ModelOverloaded(ModelError):
    """The service cannot serve now (429, 5xx). Temporary; `retry_after` where the server said when to come back."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message, temporary=True, retry_after=retry_after)


class ModelRefused(ModelError):
    """The service will not serve this request, however often it is asked."""


class ModelDenied(ModelRefused):
    """The service will serve no request like this: wrong key, no credit, unknown model or address. Fatal."""

    def __init__(self, message: str) -> None:
        super().__init__(message, fatal=True)


class ContentFiltered(ModelRefused):
    """The provider's content filter stopped the prompt or the reply."""


class ReplyBroken(ModelError):
    """The service answered "200 OK", and there is no reply in it. Temporary where nothing else is said."""

    def __init__(self, message: str, *, temporary: bool = True, fatal: bool = False) -> None:
        super().__init__(message, temporary=temporary, fatal=fatal)


class ReplyEmpty(ReplyBroken):
    """The reply holds no text."""


class ReplyTruncated(ReplyBroken):
    """The reply was cut off at the token limit."""


class ReplyUnreadable(ModelError):
    """The model answered, but not in the form that was asked for. `reply` is what it said."""

    def __init__(self, message: str, *, reply: str = "") -> None:
        self.reply = reply
        super().__init__(message)


class BudgetReached(ModelError):
    """The next request would exceed the run's budget."""

    def __init__(self, message: str) -> None:
        super().__init__(message, fatal=True)


class RunStopped(ToolMemError):
    """More errors than `max_errors`: the run was stopped, what was done until then is kept."""


class ServiceError(ToolMemError):
    """The HTTP service failed, or what answered is not toolmem's. Raised by `toolmem.client` alone."""


class ServiceUnreachable(ServiceError):
    """The HTTP service gave no answer, or none but that it is busy.

    `sent`: it may have carried the request out, at the last attempt or at one before.
    """

    def __init__(self, message: str, *, sent: bool = False) -> None:
        self.sent = sent
        super().__init__(message)


class ServiceDenied(ServiceError):
    """The HTTP service does not let the caller in: it asks for a token, and none was sent, or the wrong one."""


class ClientClosed(ServiceError):
    """A client of the HTTP service was used after it was closed; nothing was sent."""
