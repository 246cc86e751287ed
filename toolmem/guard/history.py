"""Record the calls that ran, for conditions on earlier calls (`earlier`) and counts (`more_than`).

The record has the place of the last call that met each of these tests, of the last that met it and
worked, and of the last that wrote files. A test that no recorded call met does not hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from threading import Lock
from typing import NamedTuple

from msgspec import Struct

from toolmem.guard.failure_output import shows_failure
from toolmem.models.rules import ToolMemoryRule
from toolmem.store.storable import micros
from toolmem.text.forms import short_key, word_set
from toolmem.view.conditions import (
    SHOWS_ONLY,
    Conditions,
    Doubt,
    EarlierTest,
    History,
    Match,
    MoreThan,
)
from toolmem.view.effects import CallEffects, command_may_write
from toolmem.view.shell import SimpleCommand
from toolmem.view.view import CallView

MAX_RUNNING = 1_000  # calls in this process
_CHECKERS = word_set("ruff mypy eslint flake8 pylint tsc pyright shellcheck gh pytest tox jest")
_CHECKS = word_set("test lint check typecheck clippy vet status view list")
_GIT_NOT_WRITING = word_set("add commit fetch push tag remote config branch")


class Met(Struct):
    """Places (from 1; 0: none) of the last call that met a test, and of the last that worked."""

    ended: int = 0
    worked: int = 0
    unknown: int = 0  # the call ended, and the host did not say whether it worked


class CallHistory(Struct, kw_only=True, omit_defaults=True):
    """The places (from 1) in a conversation of its last file write, and of calls that met tests."""

    at: int = 0  # the last place
    wrote: int = 0  # the place of the last call that wrote files
    met: dict[str, Met] = {}


class KnownHistory(History):
    """Tells `Conditions.check` about earlier calls. Only the host can say that a call worked.

    `counted`: when calls were counted (microseconds since 1970), by `count_key`. `agreed`: keys of
    questions (`doubt_key`) to which the user said yes.
    """

    def __init__(
        self,
        calls: CallHistory,
        counted: Mapping[str, list[int]],
        now: datetime,
        agreed: Sequence[str] = (),
    ) -> None:
        self.calls = calls
        self.counted = counted
        self.now = now
        self.agreed = agreed
        self.rule_id = ""  # of the rule that is checked: each counts its own calls
        self.is_unsure = False  # the host did not say whether an earlier call worked
        self._assumes_worked = False

    def happened(self, test: EarlierTest, unless: bool) -> bool:
        met = self.calls.met.get(test.key)
        if met is None:
            return False
        place = met.worked if test.worked else met.ended
        after = self.calls.wrote if test.since else 0
        if test.worked and place <= after < met.unknown:
            self.is_unsure = True
            return self._assumes_worked
        return place > after

    def match(self, rule: ToolMemoryRule, conditions: Conditions, view: CallView) -> Match:
        """Return whether a rule means a call; MAYBE if this depends on something unknown."""
        self.rule_id = rule.id
        self.is_unsure = False
        found = conditions.check(view, self.now, self)
        if self.is_unsure:
            self._assumes_worked = True
            other = conditions.check(view, self.now, self)
            self._assumes_worked = False
            return found if other is found else Match.MAYBE
        return found

    def let_through(self, doubt: Doubt) -> bool:
        return doubt_key(self.rule_id, doubt) in self.agreed

    def exceeded(self, test: MoreThan) -> bool:
        times = self.counted.get(count_key(self.rule_id, test), ())
        return len(still_counted(times, test, self.now)) >= test.calls


class RunningCall(NamedTuple):
    """A call that was allowed and has not ended."""

    view: CallView
    identity: str
    changed: int  # `Failures.changed` when the call began


class RunningCalls:
    """The newest running calls of this process, by the ids of their decisions."""

    def __init__(self) -> None:
        self._calls: dict[str, RunningCall] = {}
        self._lock = Lock()

    def begin(self, decision_id: str, view: CallView, identity: str, changed: int) -> None:
        with self._lock:
            self._calls[decision_id] = RunningCall(view, identity, changed)
            while len(self._calls) > MAX_RUNNING:
                oldest = next(iter(self._calls))
                del self._calls[oldest]

    def end(self, decision_id: str) -> RunningCall | None:
        with self._lock:
            return self._calls.pop(decision_id, None)


def _may_write_files(command: SimpleCommand) -> bool:
    """Whether a command may write files: not a checker without a fix, but an unknown program."""
    if not command_may_write(command):
        return False
    program, *rest = command.words or ("",)
    if program in ("python", "python3") and rest[:1] == ["-m"]:
        program, *rest = rest[1:] or [""]
    if program == "git":
        return not rest or rest[0] not in _GIT_NOT_WRITING
    checks = program in _CHECKERS or not _CHECKS.isdisjoint(rest)
    return not checks or any("fix" in word for word in rest)


def doubt_key(rule_id: str, doubt: Doubt) -> str:
    """Return the key by which a conversation remembers a yes to a call that a rule may mean."""
    return short_key(rule_id, *doubt)


def count_key(rule_id: str, test: MoreThan) -> str:
    """Return the key under which calls are counted for a limit (`more_than`) of a rule."""
    return f"{rule_id}/{test.per}/{test.calls}"


def still_counted(times: Iterable[int], test: MoreThan, now: datetime) -> list[int]:
    """Keep the times, in microseconds since 1970, that are within the period of the test."""
    if test.per == "conversation":
        return list(times)
    if test.per == "day":
        begins = now.replace(hour=0, minute=0, second=0, microsecond=0)
    else:
        begins = now - timedelta(seconds=int(test.per[:-1]))
    return [at for at in times if at >= micros(begins)]


def record_call(
    calls: CallHistory,
    view: CallView,
    effects: CallEffects,
    asked: Mapping[str, EarlierTest],
    output: str,
    *,
    failed: bool | None,
) -> None:
    """Record which tests a call met, and its writes of files. `asked`: all tests, by key."""
    is_read = False
    for unit in view.units:
        command = unit.command
        met = [key for key, test in asked.items() if test.meets(view, unit, False)]
        if command is None:
            writes = effects.may_write() and not met
            is_sure = True
        else:
            writes = bool(command.writes) or (not met and _may_write_files(command))
            is_sure = command.number in view.shells[unit.shell].sure
        calls.at += 1
        if writes:
            calls.wrote = calls.at
            calls.at += 1
        if met and not is_read:  # once, however many commands the call has
            is_read = True
            # Even if the host says that it worked: perhaps a function only returned.
            if shows_failure(effects.tool, effects.arguments, output):
                failed = True
        for key in met:
            place = calls.met.setdefault(key, Met())
            place.ended = calls.at
            if failed or not is_sure or not SHOWS_ONLY.isdisjoint(unit.words):
                continue
            if failed is None:
                place.unknown = calls.at
            else:
                place.worked = calls.at


def required_call(conditions: Conditions) -> str:
    """Return a sentence on the earlier call that would allow this call; "" if none would."""
    first = next((each.earlier for each in conditions.unless if each.earlier is not None), None)
    if first is None:
        return ""
    what = first.command or first.tool or first.target or "that call"
    since = " after the last change of files" if first.since else ""
    return f"First a call that matches {what!r} has to {'work' if first.worked else 'run'}{since}."
