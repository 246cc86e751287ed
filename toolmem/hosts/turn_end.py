"""At a turn's end, once for a message: what the user demanded and no call is checked against, the model may note."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from toolmem.engine import DEFAULT_WORKSPACE
from toolmem.hosts.events import SILENT, HookAnswer

if TYPE_CHECKING:
    from toolmem.hosts.events import HookEvent
    from toolmem.hosts.receipts import Receipts
    from toolmem.light_models import ToolMemoryRule

_SHOWN = 300  # characters of a sentence
_ASKED = (
    "toolmem: of what the user just said, this is kept as a reminder alone, and no call is checked against it: {}. If "
    "the tool, command, path, recipient, text or time of a call tells when it is broken, note it now with `toolmem "
    "note`, as it was shown when the session began. If not, say nothing of this and end your turn: it is asked once."
)


def question(event: HookEvent, receipts: Receipts, folder: str, named_store: str) -> HookAnswer:
    """Silent where every demand is checked, where a note came since, and where it was asked before."""
    began, note = receipts.last_prompt(event.session_id)
    sentences = note.get("unchecked") if isinstance(note, Mapping) else None
    if not sentences or receipts.asked_since(event.session_id, began):
        return SILENT
    from toolmem.readers.plain_text import plain_line

    if came_since(event.session_id, note.get("turn"), began, folder, named_store):
        return SILENT
    shown = ", ".join(f"“{plain_line(str(each), _SHOWN)}”" for each in sentences)
    return HookAnswer(action="ask", reason=_ASKED.format(shown))


def came_since(session: str, turn: int | None, began: float, folder: str, named_store: str) -> bool:
    """Did a model note anything since the message?"""
    from toolmem.hosts.event_stores import open_stores
    from toolmem.readers.weight import at_once
    from toolmem.rules.noted_demands import NOTED
    from toolmem.rules.rule_store import RuleStore
    from toolmem.rules.words_after import Before, came_of

    before = Before(session, turn, datetime.fromtimestamp(began, UTC))

    def is_note(rule: ToolMemoryRule) -> bool:
        return NOTED in rule.tags and came_of(rule, before)

    for store in open_stores(folder, named_store).all:
        rules = RuleStore(store.protocol, DEFAULT_WORKSPACE, clock=store.clock)
        if any(map(is_note, at_once(rules.all_rules(inactive=True))[0])):
            return True
    return False
