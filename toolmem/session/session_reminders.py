"""Which of the user's reminders come again with a call of a session."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import datetime

from toolmem.guard.decision import CheckedRule, GuardDecision
from toolmem.providers.tokenizer import estimated_tokens
from toolmem.rules.reminding import EVERY, reminder_of


class SessionReminders:
    """Counts the calls of one session since each reminder was shown: in its prompt, when it was said, or by this."""

    def __init__(self, started: datetime) -> None:
        self._started = started
        self._calls = 0
        self._shown: dict[str, int] = {}  # id of the rule -> the calls that had been decided on by then
        self._compacted = False
        self._lock = threading.Lock()

    def compacted(self) -> None:
        """What was shown may be gone from what the model reads."""
        with self._lock:
            self._compacted = True
            self._shown = dict.fromkeys(self._shown, self._calls - EVERY)

    def beside(self, decision: GuardDecision) -> GuardDecision:
        """The decision, with what is due as advice."""
        with self._lock:
            text = "" if decision.stops else self._due(decision.reminders)
            self._calls += 1
        if not text:
            return decision
        action = "advise" if decision.action == "allow" else decision.action
        return replace(decision, action=action, advice="\n".join(filter(None, (decision.advice, text))))

    def _due(self, reminders: tuple[CheckedRule, ...]) -> str:
        due = sorted(
            (each for each in reminders if self._calls - self._shown_at(each) >= EVERY),
            key=lambda each: self._shown[each.id],
        )
        text, told = reminder_of([each.text for each in due], estimated_tokens)
        for each in due[:told]:
            self._shown[each.id] = self._calls + 1  # this one among them
        return text

    def _shown_at(self, rule: CheckedRule) -> int:
        """A rule that is met for the first time stood in the prompt, or was said since."""
        if rule.id not in self._shown:
            is_new = rule.said_at is not None and rule.said_at > self._started
            self._shown[rule.id] = self._calls if is_new else -EVERY if self._compacted else 0
        return self._shown[rule.id]
