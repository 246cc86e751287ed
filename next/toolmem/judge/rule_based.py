"""The rule-based judge behind the interface that every judge has."""

from __future__ import annotations

from toolmem.judge.check import IDENTITY, check
from toolmem.models.calls import ToolCallResult, Verdict
from toolmem.models.tools import ToolSchema


class RuleBasedJudge:
    """Judges at once and for nothing."""

    identity = IDENTITY
    asks_model = False

    def judge(self, call: ToolCallResult, schema: ToolSchema | None) -> Verdict:
        return check(call, schema)
