"""Detect the exact repeat of a call that failed in this conversation, with nothing changed since.

A failure counts until the same call works, a call that may write succeeds, time passes, or the user
speaks. The failure of an edit also ends when a file is read. If an unchanged repeat works once, its
error says nothing about the input and is forgiven: calls that fail with it may be repeated. This
holds for the tool and the error line in all conversations of the workspace. If the output was only
an exit code, it holds for the tool, the programs and the code in this conversation.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Collection
from hashlib import blake2b
from typing import Any

from msgspec import Struct

from toolmem.guard.decision import Finding, Mode, quoted, times
from toolmem.guard.failure_output import CHANGED, PENDING, TESTS_FAILED, occurs, without_exit_code
from toolmem.models.decisions import Action, DecisionSource
from toolmem.text.error_lines import error_class_of, error_line
from toolmem.text.forms import short_key
from toolmem.text.patterns import late_pattern
from toolmem.view.effects import CallEffects

MAX_FAILURES = 500  # of one conversation; the oldest are dropped
MAX_HERE = 100  # errors that are forgiven only in one conversation
MAX_IDS = 8  # of calls that failed with one error
PAUSES = (1, 4)  # seconds, advised before the first repeats of a transient failure
# Errors of a service that its caller did not cause.
_TRANSIENT = frozenset(("timeout", "rate_limited", "server_error", "connection_error"))
_PASSING = late_pattern(
    r"\b(?:is locked|resource busy|temporarily unavailable|try again (?:later|in)"
    r"|service unavailable|too many requests|connection (?:reset|refused|aborted)"
    r"|deadlock found)\b",
    re.I,
)
_HERE = "here:"  # begins the key of an error with only an exit code


class FailedCall(Struct, kw_only=True, omit_defaults=True):
    """A failed call of a conversation."""

    error: str  # a key of the tool and the error
    line: str
    times: int = 1
    is_transient: bool = False  # it may pass by itself
    is_edit: bool = False  # of a file
    is_uncertain: bool = False  # a repeat may come out differently
    is_denied: bool = False  # a repeat was denied
    is_forced: bool = False  # a repeat ran by force
    call_ids: list[str] = []


class Outcome(Struct, kw_only=True):
    """What the end of a call means for the failures of its conversation."""

    changes: bool = False  # a later call may find something else
    shows_files: bool = False
    leaves_running: bool = False  # it left something running in the background
    casts_doubt: bool = False  # repeats of earlier failures may come out differently
    failure: FailedCall | None = None  # that counts against a repeat


class Failures(Struct, kw_only=True, omit_defaults=True):
    """Failures of one conversation that still count. A call that changes something clears them."""

    failures: dict[str, FailedCall] = {}
    changed: int = 0  # how often something changed
    is_running: bool = False  # something was left running
    here: list[str] = []  # errors that are forgiven only in this conversation


def call_digest(tool_name: str, arguments: Any) -> str:
    """Return a digest of a tool and its arguments. Hooks store it, so it must never change."""
    text = json.dumps([tool_name, arguments], sort_keys=True)
    return blake2b(text.encode(), digest_size=12).hexdigest()


def call_identity(tool_name: str, arguments: Any, key: bytes) -> str:
    """Return a keyed hash of the tool and its input; "" if the input cannot be written as JSON."""
    try:
        text = json.dumps([tool_name, arguments], sort_keys=True, ensure_ascii=False, default=str)
    except (ValueError, TypeError, RecursionError):
        return ""
    return hmac.digest(key, text.encode("utf-8", "surrogatepass"), "blake2s").hex()[:32]


def check_repeat(
    state: Failures,
    identity: str,
    forgiven: Collection[str],
    mode: Mode,
    effects: CallEffects,
    force: bool | None,  # as in `Guard.before`
) -> list[Finding]:
    """Return a finding if a failed call is repeated and its error is not `forgiven`, else []."""
    failure = state.failures.get(identity)
    if failure is None or failure.error in forgiven or failure.error in state.here:
        return []
    line = quoted(failure.line)
    count = failure.times
    action: Action = "advise"
    is_forced = False
    if failure.is_transient and count <= len(PAUSES):
        wait = f"wait {PAUSES[count - 1]} s before it is sent again"
        text = f"This call failed {times(count)} with {line}; {wait}."
    else:
        since = "It may fail again"
        way_out = ""
        if not (failure.is_uncertain or state.is_running or effects.asks_outside()):
            action = "deny"
            since = "Nothing that could change the outcome has changed since"
            is_forced = failure.is_denied and not failure.is_forced if force is None else force
            if mode == "enforce" and force is not None:
                way_out = ", or repeat it with force"
            elif mode == "enforce" and not failure.is_forced:
                way_out = ", or send it once more as it is"
        text = (
            f"This exact call failed {times(count)} in this conversation: {line}. "
            f"{since}: change the input or what it depends on{way_out}."
        )
    source = DecisionSource(kind="repeat", k=count, n=count, call_ids=tuple(failure.call_ids))
    return [Finding(source, action, text, mode=mode, is_forced=is_forced)]


def record_outcome(
    state: Failures, identity: str, outcome: Outcome, *, failed: bool | None, call_id: str
) -> str:
    """Update the failures after a call. Returns the error to forgive if a repeat worked, or ""."""
    state.is_running |= outcome.leaves_running
    before = state.failures.pop(identity, None)
    if outcome.changes:
        state.failures.clear()
        state.changed += 1
    if failed is None:
        if before is not None and not outcome.changes:
            state.failures[identity] = before
        return ""
    if outcome.shows_files:
        state.failures = {k: v for k, v in state.failures.items() if not v.is_edit}
    if outcome.casts_doubt:
        for each in state.failures.values():
            each.is_uncertain = True
    if outcome.failure is not None and identity:
        _remember(state, identity, outcome.failure, before, call_id)
    if failed or before is None:
        return ""
    if before.error.startswith(_HERE):
        state.here = [*state.here, before.error][-MAX_HERE:]
        return ""
    return before.error


def _remember(
    state: Failures, identity: str, new: FailedCall, before: FailedCall | None, call_id: str
) -> None:
    while len(state.failures) >= MAX_FAILURES:
        del state.failures[next(iter(state.failures))]
    new.line = new.line[:200]
    new.call_ids = [call_id[:100]] if call_id else []
    if before is not None:
        new.times = before.times + 1
        new.is_denied = before.is_denied
        new.is_forced = before.is_forced
        new.call_ids = [*before.call_ids, *new.call_ids][-MAX_IDS:]
    state.failures[identity] = new


def outcome_of(call: CallEffects, output: str, *, failed: bool | None) -> Outcome:
    """Tell from a call's input and output what its end means for earlier failures."""
    if failed:
        return _failed_outcome(call, output)
    return Outcome(
        changes=call.may_write() or call.passes_time(),
        casts_doubt=call.changes(),
        shows_files=call.shows_files(),
        leaves_running=call.leaves_running(),
    )


def _failed_outcome(call: CallEffects, output: str) -> Outcome:
    text, code = without_exit_code(output)
    line = error_line(text) if text else ""
    is_transient = error_class_of(line) in _TRANSIENT or _PASSING.search(line[:2_000]) is not None
    programs = [each.words[0] for each in call.view.commands if each.words]
    error = short_key(call.tool, line) if line else _HERE + short_key(call.tool, *programs, code)
    has_changed = occurs(CHANGED, text)  # it failed because it changed files
    may_differ = occurs(TESTS_FAILED, text) or occurs(PENDING, text)
    failure = FailedCall(
        error=error,
        line=line or code or "no message",
        is_transient=is_transient,
        is_edit="@write" in call.view.classes,  # it may work once the file was read
        is_uncertain=may_differ or (is_transient and bool(call.view.commands)),
    )
    return Outcome(
        changes=call.passes_time() or has_changed,
        leaves_running=call.leaves_running(),
        casts_doubt=call.changes_though_failed(),
        failure=None if has_changed else failure,
    )
