"""The exact call that failed in this conversation, with nothing changed since.

A failure is held against the same tool and input until the same call works, anything that may write
succeeds, time passes, or the user speaks; that of an edit also until a file is read. An error of
which an unchanged repeat has once worked is forgiven from then on: it says nothing about the input.
That is learned per tool and error line, over all conversations of a workspace; of a failure that
says an exit code alone, per tool, programs and code, in its conversation.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Collection
from typing import Any

from msgspec import Struct

from toolmem.guard.decision import Finding, Mode, quoted, times
from toolmem.guard.failure_output import CHANGED, NOT_YET, TESTS_FAILED, says, without_exit_code
from toolmem.models.decisions import Action, DecisionSource
from toolmem.text.error_lines import error_class_of, error_line
from toolmem.text.patterns import late_pattern
from toolmem.view.effects import CallEffects

MAX_FAILURES = 500  # that stand in one conversation; the oldest go
MAX_HERE = 100  # errors that are forgiven in one conversation alone
MAX_IDS = 8  # of the calls that failed so
WAITS = (1, 4)  # seconds before each repeat of a transient failure that is let through
# Errors of a service that its caller did not cause.
_TRANSIENT = frozenset(("timeout", "rate_limited", "server_error", "connection_error"))
_PASSES = late_pattern(
    r"\b(?:is locked|resource busy|temporarily unavailable|try again (?:later|in)"
    r"|service unavailable|too many requests|connection (?:reset|refused|aborted)"
    r"|deadlock found)\b",
    re.I,
)
_HERE = "here:"  # begins the mark of an error that says an exit code alone


class FailedCall(Struct, kw_only=True, omit_defaults=True):
    """A failed call as it is remembered."""

    error: str
    line: str
    times: int = 1
    is_transient: bool = False
    is_edit: bool = False
    is_uncertain: bool = False
    is_denied: bool = False  # its repeat was
    is_forced: bool = False  # its repeat ran all the same
    call_ids: list[str] = []


class Ended(Struct, kw_only=True):
    """What of a call that ended concerns the failures of its conversation."""

    changes: bool = False  # what a later call finds
    shows_files: bool = False
    leaves_running: bool = False  # something whose work no later call tells
    casts_doubt: bool = False  # earlier failures may come out differently
    failure: FailedCall | None = None  # of one that may be held against its repeat


class ConversationFailures(Struct, kw_only=True, omit_defaults=True):
    """The failures of one conversation that still stand. A change empties them."""

    failures: dict[str, FailedCall] = {}
    changed: int = 0  # how often something changed
    is_running: bool = False  # something was left running
    here: list[str] = []  # errors that are forgiven in this conversation alone


def identity(tool_name: str, arguments: Any, key: bytes) -> str:
    """What makes two calls the same: the tool and its canonical input. Keyed: it tells nothing."""
    try:
        text = json.dumps([tool_name, arguments], sort_keys=True, ensure_ascii=False, default=str)
    except (ValueError, TypeError, RecursionError):
        return ""  # nothing that two calls could share
    return hmac.digest(key, text.encode("utf-8", "surrogatepass"), "blake2s").hex()[:32]


def check_repeat(
    held: ConversationFailures,
    call: str,
    forgiven: Collection[str],
    mode: Mode,
    effects: CallEffects,
    force: bool | None,
) -> list[Finding]:
    """What stands against a call by its identity. `force` as in `Guard.before`."""
    failure = held.failures.get(call)
    if failure is None or failure.error in forgiven or failure.error in held.here:
        return []
    line, n = quoted(failure.line), failure.times
    action: Action = "advise"
    is_forced = False
    if failure.is_transient and n <= len(WAITS):
        wait = f"wait {WAITS[n - 1]} s before it is sent again"
        text = f"This call failed {times(n)} with {line}; {wait}."
    else:
        since = "It may fail again"
        way_out = ""
        if not (failure.is_uncertain or held.is_running or effects.asks_outside()):
            action, since = "deny", "Nothing that could change the outcome has changed since"
            is_forced = failure.is_denied and not failure.is_forced if force is None else force
            if mode == "enforce" and force is not None:
                way_out = ", or repeat it with force"
            elif mode == "enforce" and not failure.is_forced:
                way_out = ", or send it once more as it is"
        text = (
            f"This exact call failed {times(n)} in this conversation: {line}. "
            f"{since}: change the input or what it depends on{way_out}."
        )
    source = DecisionSource(kind="repeat", k=n, n=n, call_ids=tuple(failure.call_ids))
    return [Finding(source, action, text, mode=mode, is_forced=is_forced)]


def take(
    held: ConversationFailures, call: str, ended: Ended, *, failed: bool | None, call_id: str
) -> str:
    """How a call ended. The error that it shows to pass by itself; "" where it shows none."""
    held.is_running |= ended.leaves_running
    before = held.failures.pop(call, None)
    if ended.changes:
        held.failures.clear()
        held.changed += 1
    if failed is None:
        if before is not None and not ended.changes:
            held.failures[call] = before
        return ""
    if ended.shows_files:
        held.failures = {k: v for k, v in held.failures.items() if not v.is_edit}
    if ended.casts_doubt:
        for each in held.failures.values():
            each.is_uncertain = True
    if ended.failure is not None and call:
        _remember(held, call, ended.failure, before, call_id)
    if failed or before is None:
        return ""
    if before.error.startswith(_HERE):
        held.here = [*held.here, before.error][-MAX_HERE:]
        return ""
    return before.error


def _remember(
    held: ConversationFailures, call: str, new: FailedCall, before: FailedCall | None, call_id: str
) -> None:
    while len(held.failures) >= MAX_FAILURES:
        del held.failures[next(iter(held.failures))]
    new.line = new.line[:200]
    new.call_ids = [call_id[:100]] if call_id else []
    if before is not None:
        new.times = before.times + 1
        new.is_denied, new.is_forced = before.is_denied, before.is_forced
        new.call_ids = [*before.call_ids, *new.call_ids][-MAX_IDS:]
    held.failures[call] = new


def ended_as(call: CallEffects, output: str, *, failed: bool | None) -> Ended:
    """What a call that ran tells by its input and its output."""
    if failed:
        return _failed(call, output)
    return Ended(
        changes=call.may_write() or call.passes_time(),
        casts_doubt=call.changes(),
        shows_files=call.shows_files(),
        leaves_running=call.leaves_running(),
    )


def _failed(call: CallEffects, output: str) -> Ended:
    said, code = without_exit_code(output)
    line = error_line(said) if said else ""
    is_transient = error_class_of(line) in _TRANSIENT or bool(line and _PASSES.search(line[:2_000]))
    programs = [each.words[0] for each in call.view.commands if each.words]
    mark = _mark(call.tool, line) if line else _HERE + _mark(call.tool, *programs, code)
    heals = says(CHANGED, said)  # it failed by repairing what it found
    may_differ = says(TESTS_FAILED, said) or says(NOT_YET, said)
    failure = FailedCall(
        error=mark,
        line=line or code or "no message",
        is_transient=is_transient,
        is_edit="@write" in call.view.classes,  # what it may do depends on what has been read
        is_uncertain=may_differ or (is_transient and bool(call.view.commands)),
    )
    return Ended(
        changes=call.passes_time() or heals,
        leaves_running=call.leaves_running(),
        casts_doubt=call.changes_though_failed(),
        failure=None if heals else failure,
    )


def _mark(*parts: str) -> str:
    """Hashed, so that what is forgiven tells nothing of a call."""
    text = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2s(text, digest_size=12).hexdigest()
