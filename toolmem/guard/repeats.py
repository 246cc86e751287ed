"""The exact call that failed in this conversation, with nothing changed since: what is held against its repeat.

A failure is held against the same tool and input until the same call works, anything that may write succeeds, or time
passes; that of an edit also until a file is read. An error of which an unchanged repeat has once worked is forgiven
from then on: it says nothing about the input. That is learned per tool and telling line, over all conversations of a
workspace; of a failure that says an exit code alone, per tool, program and code, in its conversation. Measured by
`benchmarks/guard.py`; the figures are in `docs/benchmarks.md`.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass, field, replace
from toolmem.readers.written_arguments import opened_arguments

# Errors of a service that its caller did not cause. The same call may be sent again, twice.
TRANSIENT = frozenset(("timeout", "rate_limited", "server_error", "connection_error"))
_PASSES = late_pattern(
    r"\b(?:is locked|resource busy|temporarily unavailable|try again (?:later|in)|service unavailable|"
    r"too many requests|connection (?:reset|refused|aborted)|deadlock found)\b",
    re.IGNORECASE,
)
MOST_FAILURES = 500  # that stand in one conversation; the oldest go
MOST_ERRORS = 500  # of which repeats are counted in a workspace; those go first of which none worked
_MOST_HERE = 100  # errors that are forgiven in one conversation alone
_HERE = "here:"
_LONGEST_LINE = 200  # characters of an error that are remembered
_LONGEST_ID, _MOST_IDS = 100, 8  # of the calls that failed so
RETRIES = 2  # unchanged repeats of a transient failure that are let through
WAITS = (1.0, 4.0)  # seconds before each


def is_transient(line: str) -> bool:
    """Is an error, by its telling line, one that its caller did not cause?"""
    if not line:
        return False
    from toolmem.readers.error_classes import error_class_of  # late: before most calls no failure stands

    return error_class_of(line) in TRANSIENT or _PASSES.search(line[:2000]) is not None


def identity(tool_name: str, arguments: Any, key: bytes = b"") -> str:
    """What makes two calls the same: tool and canonical input, values untouched. Keyed, so that it tells nothing."""
    given = opened_arguments(arguments)
    text = json.dumps([tool_name, given], sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)
    return hmac.digest(key, text.encode("utf-8", "surrogatepass"), "blake2s").hex()[:32]


def error_id(tool_name: str, line: str) -> str:
    """What is forgiven together: a tool and a telling line. Hashed: what is counted tells nothing of a call."""
    text = f"{tool_name}\0{line}".encode("utf-8", "surrogatepass")
    return hashlib.blake2s(text, digest_size=12).hexdigest()


def here_alone(error: str) -> str:
    """An error that says nothing of what went wrong: what is forgiven of it is so in one conversation."""
    return _HERE + error


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What of a call that ended concerns the failures of its conversation."""

    changes: bool = False  # what a later call finds
    shows_files: bool = False
    left_running: bool = False  # something whose work no later call tells
    casts_doubt: bool = False  # what failed before may come out differently: it is not sure
    error: str = ""  # of a failure: `error_id`
    line: str = ""  # its telling line
    transient: bool = False
    is_edit: bool = False  # of a file, by a tool that wants it read before
    may_differ: bool = False  # when it is repeated: nobody is stopped for that
    heals: bool = False  # it failed by repairing what it found


@dataclass(frozen=True, slots=True)
class FailedCall:
    """A failed call as it is remembered."""

    error: str  # `error_id` of its message
    line: str  # the telling line, at most 200 characters of it
    transient: bool = False
    step: int = 0  # of the conversation; 0: not counted
    state: int = 0  # how often the conversation had changed anything
    folder: str = ""  # in which it ran, and who wrote there last; "" where that is not known
    times: int = 1  # this call has failed so, unchanged
    call_ids: tuple[str, ...] = ()
    denied: bool = False  # its repeat was
    forced: bool = False  # its repeat ran all the same
    is_edit: bool = False  # until its agent reads a file
    may_differ: bool = False  # its repeat is only advised against

    def as_json(self) -> dict[str, Any]:
        """Without what is as it mostly is, and without step and state: only what stands is kept."""
        kept: dict[str, Any] = {"error": self.error, "line": self.line, "times": self.times}
        for name in ("transient", "folder", "denied", "forced", "is_edit", "may_differ"):
            if value := getattr(self, name):
                kept[name] = value
        return kept | {"call_ids": list(self.call_ids)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any], state: int) -> FailedCall:
        """Raises KeyError, TypeError or ValueError where it is none."""
        return cls(
            error=str(value["error"]),
            line=str(value["line"])[:_LONGEST_LINE],
            transient=value.get("transient") is True,
            state=state,
            folder=str(value.get("folder", "")),
            times=int(value["times"]),
            call_ids=tuple(str(each) for each in value["call_ids"]),
            denied=value.get("denied") is True,
            forced=value.get("forced") is True,
            is_edit=value.get("is_edit") is True,
            may_differ=value.get("may_differ") is True,
        )


@dataclass(frozen=True, slots=True)
class Held:
    """What is held against a call."""

    failure: FailedCall
    wait: float | None = None  # seconds, where it may be sent again: a transient error
    left: int = 0  # such retries


@dataclass(slots=True)
class Forgiveness:
    """How often unchanged repeats of an error have come, and how often one worked: of a workspace, by `error_id`."""

    repeats: Counter[str] = field(default_factory=Counter)
    worked: Counter[str] = field(default_factory=Counter)

    def forgiven(self, error: str) -> bool:
        return self.worked[error] > 0

    def add(self, other: Forgiveness) -> None:
        """What else was counted. At most 500 errors: those of which no repeat worked go first, then the oldest."""
        self.repeats.update(other.repeats)
        self.worked.update(other.worked)
        spare = len(self.repeats) - MOST_ERRORS
        if spare > 0:
            for error in sorted(self.repeats, key=lambda each: (each in other.repeats, self.forgiven(each)))[:spare]:
                del self.repeats[error], self.worked[error]

    def as_json(self) -> dict[str, Any]:
        return {"errors": {error: [n, self.worked[error]] for error, n in self.repeats.items()}}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Forgiveness:
        """Raises KeyError, TypeError or ValueError where it is none."""
        errors = {str(error): (int(n), int(worked)) for error, (n, worked) in value["errors"].items()}
        return cls(
            Counter({error: n for error, (n, _) in errors.items()}),
            Counter({error: worked for error, (_, worked) in errors.items() if worked}),
        )


@dataclass(slots=True)
class StandingFailures:
    """The failures of one conversation that still stand, at most 500. Constant work per call.

    `forgiveness` is asked, and counts the repeats that end here. `folder`: where the conversation works and who wrote
    there last, "" where that is not known; a failure of another folder, or from before such a write, does not stand.
    """

    forgiveness: Forgiveness = field(default_factory=Forgiveness)
    failures: dict[str, FailedCall] = field(default_factory=dict)
    state: int = 0
    steps: int = 0
    folder: str = ""
    unwatched: bool = False  # something that was left running may change what a repeat finds
    here: tuple[str, ...] = ()  # errors of which a repeat worked, forgiven in this conversation alone

    def before(self, call: str) -> Held | None:
        """What stands against a call, by its identity."""
        failure = self._standing(call)
        if failure is None or self._forgiven(failure.error):
            return None
        if failure.transient:
            left = RETRIES + 1 - failure.times
            return Held(failure, WAITS[min(failure.times, len(WAITS)) - 1] if left > 0 else None, max(left, 0))
        return Held(failure)

    def ended(self, call: str, ended: Ended, *, failed: bool, call_id: str = "", began: int | None = None) -> None:
        """How a call ended. `began`: the state in which it was started."""
        self.steps += 1
        before = self._standing(call)
        if before is not None:
            self._count(before.error, worked=not failed)
        self.failures.pop(call, None)
        moved = began is not None and began != self.state
        self._let_go(ended)
        if not failed or not call or moved or ended.heals:
            return  # no call can repeat it, or something was changed while it ran: its repeat may work
        failure = FailedCall(
            ended.error,
            ended.line[:_LONGEST_LINE],
            ended.transient,
            is_edit=ended.is_edit,
            may_differ=ended.may_differ,
        )
        self._keep(call, failure, before, call_id[:_LONGEST_ID])

    def _let_go(self, ended: Ended) -> None:
        """What a call leaves of the failures before it."""
        self.state += ended.changes
        if ended.shows_files:
            self.failures = {call: each for call, each in self.failures.items() if not each.is_edit}
        if ended.casts_doubt:
            self.failures = {call: replace(each, may_differ=True) for call, each in self.failures.items()}

    def _count(self, error: str, *, worked: bool) -> None:
        """A repeat of an error has come."""
        if not error.startswith(_HERE):
            self.forgiveness.repeats[error] += 1
            self.forgiveness.worked[error] += worked
        elif worked and error not in self.here:
            self.here = (*self.here, error)[-_MOST_HERE:]

    def _forgiven(self, error: str) -> bool:
        return error in self.here if error.startswith(_HERE) else self.forgiveness.forgiven(error)

    def _keep(self, call: str, failure: FailedCall, before: FailedCall | None, call_id: str) -> None:
        if len(self.failures) >= MOST_FAILURES:
            del self.failures[next(iter(self.failures))]
        self.failures[call] = replace(
            failure,
            step=self.steps,
            state=self.state,
            folder=self.folder,
            times=before.times + 1 if before else 1,
            call_ids=((before.call_ids if before else ()) + ((call_id,) if call_id else ()))[-_MOST_IDS:],
            denied=before is not None and before.denied,
            forced=before is not None and before.forced,
        )

    def denied(self, call: str) -> bool:
        """Remember that the repeat of a call was denied; False where that was known."""
        failure = self._standing(call)
        if failure is None or failure.denied:
            return False
        self.failures[call] = replace(failure, denied=True)
        return True

    def forced(self, call: str) -> bool:
        """Remember that the repeat of a call runs all the same; False where that was known."""
        failure = self._standing(call)
        if failure is None or failure.forced:
            return False
        self.failures[call] = replace(failure, forced=True)
        return True

    def unchanged_repeat_is_force(self, call: str) -> bool:
        """Of a host that cannot say force: after one denial, once until something changes."""
        failure = self._standing(call)
        return failure is not None and failure.denied and not failure.forced

    def user_spoke(self) -> None:
        """A message of the user: what failed before may work now."""
        self.failures.clear()
        self.state += 1

    def changed_by_others(self) -> None:
        """Another agent wrote in the same folder."""
        self.state += 1

    def as_json(self) -> dict[str, Any]:
        """What stands."""
        standing = {call: each.as_json() for call, each in self.failures.items() if each.state == self.state}
        kept = {"state": self.state, "failures": standing}
        kept |= {"unwatched": True} if self.unwatched else {}
        return {**kept, "here": list(self.here)} if self.here else kept

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> StandingFailures:
        """Raises KeyError, TypeError or ValueError where it is none."""
        state = int(value["state"])
        failures = {str(call): FailedCall.from_json(each, state) for call, each in value["failures"].items()}
        here = tuple(str(each) for each in value.get("here", ()))
        return cls(failures=failures, state=state, unwatched=value.get("unwatched") is True, here=here)

    def _standing(self, call: str) -> FailedCall | None:
        failure = self.failures.get(call)
        if failure is None or failure.state != self.state:
            return None
        return None if failure.folder and self.folder and failure.folder != self.folder else failure
