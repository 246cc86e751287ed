"""The exact call that failed in this conversation, with nothing changed since: what is held against its repeat.

A failure is held against the same tool and input until the same call works, or anything that may write succeeds. An
error of which an unchanged repeat has once worked is forgiven from then on: it says nothing about the input. That is
learned per tool and masked message, over all conversations of a workspace. Measured by `benchmarks/guard.py`; the
figures are in `docs/benchmarks.md`.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from toolmem.readers.error_classes import error_class_of

# Errors of a service that its caller did not cause. The same call may be sent again, twice.
TRANSIENT = frozenset(("timeout", "rate_limited", "server_error", "connection_error"))
_PASSES = re.compile(
    r"\b(?:is locked|resource busy|temporarily unavailable|try again (?:later|in)|service unavailable|"
    r"too many requests|connection (?:reset|refused|aborted)|deadlock found)\b",
    re.IGNORECASE,
)
RETRIES = 2  # unchanged repeats of a transient failure that are let through
WAITS = (1.0, 4.0)  # seconds before each


def is_transient(line: str) -> bool:
    """Is an error, by its telling line, one that its caller did not cause?"""
    return bool(line) and (error_class_of(line) in TRANSIENT or _PASSES.search(line[:2000]) is not None)


def identity(tool_name: str, arguments: Any, key: bytes = b"") -> str:
    """What makes two calls the same: tool and canonical input, values untouched. Keyed, so that it tells nothing."""
    text = json.dumps([tool_name, arguments], sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)
    return hmac.new(key, text.encode("utf-8", "surrogatepass"), hashlib.blake2s).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class FailedCall:
    """A failed call as it is remembered."""

    call_id: str
    message: tuple[str, str]  # tool and masked message: what is forgiven together
    line: str  # the telling line, as it came
    transient: bool
    step: int  # of the conversation
    state: int  # how often the conversation had changed anything
    times: int  # this call has failed so, unchanged
    call_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Held:
    """What is held against a call."""

    failure: FailedCall
    wait: float | None = None  # seconds, where it may be sent again: a transient error
    left: int = 0  # such retries


@dataclass(slots=True)
class Forgiveness:
    """How often unchanged repeats of an error have come, and how often one worked: of a workspace."""

    repeats: Counter[tuple[str, str]] = field(default_factory=Counter)
    worked: Counter[tuple[str, str]] = field(default_factory=Counter)

    def forgiven(self, message: tuple[str, str]) -> bool:
        return self.worked[message] > 0


@dataclass(slots=True)
class StandingFailures:
    """The failures of one conversation that still stand. Constant work per call."""

    forgiveness: Forgiveness
    failures: dict[str, FailedCall] = field(default_factory=dict)
    state: int = 0
    steps: int = 0

    def before(self, call: str) -> Held | None:
        """What stands against a call, by its identity."""
        failure = self._standing(call)
        if failure is None or self.forgiveness.forgiven(failure.message):
            return None
        if failure.transient:
            left = RETRIES + 1 - failure.times
            return Held(failure, WAITS[min(failure.times, len(WAITS)) - 1] if left > 0 else None, max(left, 0))
        return Held(failure)

    def after(
        self,
        call: str,
        *,
        failed: bool,
        writes: bool,
        call_id: str = "",
        message: tuple[str, str] = ("", ""),
        line: str = "",
        transient: bool = False,
    ) -> None:
        """How a call ended. A failed one changes nothing."""
        self.steps += 1
        before = self._standing(call)
        if before is not None:
            self.forgiveness.repeats[before.message] += 1
            self.forgiveness.worked[before.message] += not failed
        if not failed:
            self.failures.pop(call, None)
            self.state += writes
            return
        again = before if before is not None else None
        self.failures[call] = FailedCall(
            call_id,
            message,
            line,
            transient,
            self.steps,
            self.state,
            again.times + 1 if again else 1,
            ((*again.call_ids, call_id) if again else (call_id,))[-8:],
        )

    def user_spoke(self) -> None:
        """A message of the user: what failed before may work now."""
        self.failures.clear()

    def changed_by_others(self) -> None:
        """Another agent wrote in the same folder."""
        self.state += 1

    def _standing(self, call: str) -> FailedCall | None:
        failure = self.failures.get(call)
        return failure if failure is not None and failure.state == self.state else None
