"""Which calls of a turn failed, and how: what the rule-based check reads where nobody has said it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from toolmem.models import ToolCallResult
from toolmem.readers.denied_calls import is_denied
from toolmem.readers.written_arguments import read_arguments
from toolmem.rules.turns import ToolUse, Turn

_SOMETIME = datetime(2000, 1, 1, tzinfo=UTC)  # a call needs a time; the check does not look at it


def with_outcomes(turn: Turn) -> Turn:
    """The turn as the capture hook wants it: failures are known as such, and have the class that guidance gives them.

    What the caller says of a call holds. Where `success` is unknown, a call counts as failed if its output gives an
    execution failure away, and stays unknown otherwise.
    """
    outcome = outcome_reader()
    return replace(turn, tool_calls=tuple(outcome(use, _call(use)) for use in turn.tool_calls))


def outcome_reader() -> Callable[[ToolUse, ToolCallResult], ToolUse]:
    """The same for one call after the other: as a turn has it, and as the check wants it."""
    # The check takes a while to load, which nothing else should wait for.
    from toolmem.judge.rule_based import RuleBasedCheck

    check = RuleBasedCheck()

    def outcome(use: ToolUse, call: ToolCallResult) -> ToolUse:
        if is_denied(call.output):
            return replace(use, success=None)
        if use.success is True or (use.success is None and not use.output_summary.strip()):
            return use
        verdict = check.check(call)
        return replace(use, success=False, error_class=verdict.error_class) if verdict.execution_failed else use

    return outcome


def _call(use: ToolUse) -> ToolCallResult:
    given = read_arguments(use.arguments)
    return ToolCallResult(
        tool_name=use.name,
        input=given if isinstance(given, dict | list | str) else {},
        output=use.output_summary,
        success=use.success,
        create_time=_SOMETIME,
    )
