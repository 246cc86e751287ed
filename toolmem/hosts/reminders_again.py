"""Which of the user's reminders come again with a call of an agent, by the receipts of its session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolmem.rules.reminding import EVERY, reminder_of

if TYPE_CHECKING:
    from toolmem.guard.decision import CheckedRule
    from toolmem.hosts.receipts import Receipts


def reminder_due(receipts: Receipts, session: str, reminders: Sequence[CheckedRule]) -> str:
    """What is told with this call, and noted as told; "" where nothing is due."""
    shown = receipts.shown(session)
    begun, compacted = shown.get(("session_start", ""), 0.0), shown.get(("compaction", ""), 0.0)
    passed = receipts.call_before(session, EVERY)
    due: list[tuple[float, CheckedRule]] = []
    for each in reminders:
        said = each.said_at.timestamp() if each.said_at is not None else 0.0
        at = max(begun, said, shown.get(("reminded", each.id), 0.0))
        if at < compacted or at < passed:
            due.append((at, each))
    if not due:
        return ""
    from toolmem.providers.tokenizer import estimated_tokens

    due.sort(key=lambda each: each[0])  # the longest ago first
    text, told = reminder_of([each.text for _, each in due], estimated_tokens)
    receipts.note_shown(session, [each.id for _, each in due[:told]])
    return text
