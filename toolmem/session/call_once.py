"""The user's word that one call, which a rule had stopped, may run once."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolmem.guard.conversation import identity_of
from toolmem.guard.decision import CheckedRule
from toolmem.readers.written_arguments import opened_arguments

if TYPE_CHECKING:
    from toolmem.session.recorder import DecidedCall


@dataclass(frozen=True, slots=True)
class LetThrough:
    """By which a call runs though rules stand against it."""

    call: str  # its identity
    lifts: frozenset[str] = frozenset()  # ids of the rules that had stopped it; "" for the session's demands

    def left(self, rules: Sequence[CheckedRule]) -> list[CheckedRule]:
        """Those that bind the call all the same."""
        return [rule for rule in rules if rule.id not in self.lifts]


NOTHING = LetThrough("")


class CallOnce:
    """At most one pass, until the user's next message."""

    def __init__(self) -> None:
        self._given = NOTHING
        self._lock = threading.Lock()

    def allow(self, stopped: DecidedCall | None) -> None:
        """The call that was stopped may run; None: none may."""
        with self._lock:
            self._given = NOTHING if stopped is None else _pass_of(stopped)

    def take(self, tool_name: str, arguments: Any) -> LetThrough:
        """The pass of this very call, which nothing can take again; `NOTHING` where there is none."""
        with self._lock:
            found = self._given
            if not found.call or found.call != _identity(tool_name, arguments):
                return NOTHING
            self._given = NOTHING
            return found

    def give_back(self, taken: LetThrough) -> None:
        """Something else stopped the call: it has not run."""
        if taken.call:
            with self._lock:
                self._given = taken


def _pass_of(stopped: DecidedCall) -> LetThrough:
    lifts = frozenset(each.rule_id for each in stopped.decision.sources if each.kind == "rule")
    return LetThrough(_identity(stopped.tool_name, stopped.input), lifts)


def _identity(tool_name: str, arguments: Any) -> str:
    return identity_of(tool_name, opened_arguments(arguments), b"")
