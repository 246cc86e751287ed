"""What a user demands of one session, as the guard checks it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from toolmem.guard.decision import CheckedRule
from toolmem.rules.capture.durations import without_delay, without_duration
from toolmem.rules.capture.hook import SaidStep, SessionRule
from toolmem.rules.identity import folded_name
from toolmem.rules.rule_checks import checks_of
from toolmem.rules.turns import Tools


def checked_demands(demands: Sequence[SessionRule], tools: Tools, said_at: datetime) -> dict[str, list[CheckedRule]]:
    """By the tool's name in lower case; what cannot be checked is left out, and only reminds."""
    found: dict[str, list[CheckedRule]] = {}
    bound: dict[str, list[str]] = {}
    for each in dict.fromkeys(demands):
        bound.setdefault(each.rule, []).append(each.tool_name)
    for sentence, names in bound.items():
        lasting = without_delay(sentence)
        for name, check in checks_of(without_duration(lasting), names, tools).items():
            if check.when is not None:
                effect = "ask" if lasting != sentence else check.effect
                rule = CheckedRule("", sentence, effect, check.when, "user", said_at)
                found.setdefault(folded_name(name), []).append(rule)
    return found


def demanded(step: SaidStep) -> list[SessionRule]:
    """All that a sentence demands, for good or not."""
    return [*(SessionRule(each.tool_name, each.rule) for each in step.drafts), *step.session]
