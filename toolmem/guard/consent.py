"""Follow what the user says or answers: let one call run once, or lift a rule."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from toolmem.guard.conversation import MAX_AGREED, Conversation
from toolmem.guard.repeats import Failures
from toolmem.models.decisions import Decision
from toolmem.rules.changes import Actor
from toolmem.rules.identity import MIN_ID_LENGTH, code_of, text_key
from toolmem.rules.replies import excerpt, is_this_once, remember_lifted
from toolmem.rules.store import ToolMemoryStore
from toolmem.rules.turn import Captured
from toolmem.store.storable import micros
from toolmem.text.patterns import late_pattern

ONCE_LASTS = timedelta(hours=1)  # after `yes, this once`
# Words that may put a condition on a yes, take it back, or quote somebody.
_UNSURE = late_pattern(
    r"\b(?:if|unless|only if|until|when|after|before|once the|provided|don['’]?t|do not|not|never"
    r"|wait|actually|translate|says?|said|wrote|reply|message|text|line|title|this reads)\b"
    r"|如果|只有|等|不|别|翻译|说|写",
    re.I,
)


def follow_message(
    state: Conversation, message: str, now: datetime, *, is_guests: bool, is_trusted: bool
) -> str:
    """Update the record of a conversation for a message. Returns a line for the user, or "".

    Failed calls may be tried again. `yes, this once` lets the one call run that rules stopped since
    the last message, if the user is known to have typed it (`is_trusted`) and no guest speaks.
    """
    stops = state.stops
    old = state.failures
    state.failures = Failures(changed=old.changed + 1, here=old.here)
    state.stopped_before = state.stopped_by
    state.stopped_by = []
    state.stops = {}
    state.once = ""
    state.is_guests |= is_guests
    if state.is_guests or not stops or not is_this_once(message):
        return ""
    if not is_trusted:
        return "Nothing is let through, as it is not sure that you typed this"
    if _UNSURE.search(message):
        return "Nothing is let through yet: say `yes, this once` alone, as the whole message"
    if len(stops) > 1:
        calls = "; ".join(call or "a call that is too long to be shown" for call in stops.values())
        return (
            f"Nothing is let through yet, as several calls were stopped: {calls}. Have the "
            "one that you mean tried again, and say `yes, this once` then."
        )
    [(identity, call)] = stops.items()
    if not call:
        return "Nothing is let through: the call is too long to be shown whole"
    state.once = identity
    state.once_until = micros(now + ONCE_LASTS)
    return f"This call may run once, within an hour: {call}"


def use_once(state: Conversation, identity: str, now: datetime) -> bool:
    """Whether the user let the call with this hash run once. The permission is then used up."""
    if not identity or state.once != identity:
        return False
    state.once = ""
    return micros(now) < state.once_until


def follow_answer(
    rules: ToolMemoryStore,
    decision: Decision,
    agreed: bool,
    change: Callable[[Callable[[Conversation], Any]], Any],
) -> Captured:
    """Follow the user's answer to an `ask` decision: a yes lifts the rules that it offered to lift.

    Returns the lifted rules, and lines for the user. `change(f)` lets `f` edit the conversation,
    and stores it. Raises StoreError, and RequestError if a rule is gone.
    """
    captured = Captured()
    if decision.action != "ask":
        return captured
    conversation_id = decision.conversation_id
    now = rules.local_time()
    doubted = [source for source in decision.sources if source.unknown]
    if agreed and doubted:
        change(partial(_remember_agreed, [source.unknown for source in doubted]))
        for code in dict.fromkeys(source.rule_id[:MIN_ID_LENGTH] for source in doubted):
            line = "You let it through, and its like in this conversation. The ban holds on."
            captured.told.append(f"{line} To end it: lift {code}")
    asked = {s.rule_id: s.lifts for s in decision.sources if s.asks}
    if not asked:
        return captured
    every = rules.all_rules(conversation_id).rules
    lifts = {text_key(rule.rule): asked[rule.id] for rule in every if rule.id in asked}
    for rule in every:  # one sentence may have rules on several tools
        key = text_key(rule.rule)
        question = rule.question_at(now)
        is_open = question is not None and question.session == conversation_id
        is_meant = rule.id in asked or (is_open and key in lifts)
        if not is_meant or not (agreed or is_open):
            continue
        if question is None or not is_open or (agreed and not lifts[key]):
            code = code_of(rule)
            captured.told.append(f"You let it through. The ban holds on. To end it: lift {code}")
            continue
        actor = Actor("user", "typed", f"{question.words} (and agreed to lift it)", conversation_id)
        if agreed:
            rules.accept(rule, actor)
            captured.lifted.append(rule)
            line = f"Lifted, as you agreed: “{excerpt(rule.rule)}”. undo brings it back"
            captured.told.append(line)
        else:
            rules.reject(rule, actor)
            change(partial(_remember_declined, rule.id))
    remember_lifted(rules, conversation_id, captured.lifted)
    return captured.without_repeats()


def asked_about(rules: ToolMemoryStore, decision: Decision) -> tuple[str, str]:
    """Return two texts: the rules of a decision, and what the user said that may lift them."""
    ids = {source.rule_id for source in decision.sources}
    meant = [r for r in rules.all_rules(decision.conversation_id).rules if r.id in ids]
    questions = filter(None, (rule.question_at(rules.local_time()) for rule in meant))
    texts = dict.fromkeys(rule.rule for rule in meant)
    return "; ".join(texts), "; ".join(dict.fromkeys(each.words for each in questions))


def _remember_agreed(keys: list[str], state: Conversation) -> None:
    others = [each for each in state.agreed if each not in keys]
    state.agreed = [*others, *keys][-MAX_AGREED:]


def _remember_declined(rule_id: str, state: Conversation) -> None:
    state.lift_declined.append(rule_id)
