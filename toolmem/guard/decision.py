"""Findings of several sources about a call, and the one decision made of them.

Deny beats ask, ask beats advise. The reason of a stopped call begins with `toolmem: not run`. It
quotes everything but the user's sentence and words of toolmem.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import takewhile
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from toolmem.models.decisions import Action, Decision, DecisionSource
from toolmem.models.rules import ToolMemoryRule
from toolmem.rules.replies import MIN_ID_LENGTH
from toolmem.text.display import plain, shown_name
from toolmem.text.masking import Masker
from toolmem.text.stopped_calls import STOPPED
from toolmem.view.view import CallView

Mode = Literal["off", "shadow", "advise", "enforce"]

_ORDER: dict[str, int] = {"allow": 0, "advise": 1, "ask": 2, "deny": 3}
MAX_FINDINGS = 3  # that one reason names
_MAX_QUOTED = 200  # characters of text from a call
_MAX_SENTENCE = 500
MAX_SHOWN = 500  # characters of the arguments in the log
_MAX_READ = 8 * MAX_SHOWN  # characters of them that are masked
_VALUE_COST = 40  # characters that each value counts besides its text, which bounds the levels
_MAX_BITS = 1_000  # of a number in them
_ASK_FIRST = "; ask the user first"


class Finding(Struct):
    """What one source has against a call."""

    source: DecisionSource
    action: Action  # that the source wants, whatever its mode
    text: str  # for the agent
    remedy: str = ""  # what may be done instead
    mode: Mode = "enforce"
    is_forced: bool = False  # the agent repeats the call by force, so it runs

    @property
    def effective(self) -> Action:
        """The action after the mode and force."""
        if self.is_forced or self.mode in ("off", "shadow"):
            return "allow"
        return self.action if self.mode == "enforce" or self.action == "allow" else "advise"


def decide(
    decision_id: str, time: datetime, tool_name: str, conversation: str, findings: Sequence[Finding]
) -> Decision:
    """Combine the findings of all sources into one decision."""
    action: Action = max((f.effective for f in findings), key=lambda a: _ORDER[a], default="allow")
    reason = ""
    if action in ("ask", "deny"):
        deciding = [f for f in findings if f.effective == action]
        asking = [f for f in findings if f.effective == "ask"]
        against = _text_of([*deciding, *asking], deciding)
        reason = f"{STOPPED}{_ASK_FIRST if action == 'ask' else ''}. {against}"
    advising = [f for f in findings if f.effective == "advise"]
    mode: Literal["shadow", "advise", "enforce"] = "advise" if action == "advise" else "enforce"
    if findings and action == "allow" and not any(f.is_forced for f in findings):
        mode = "shadow"
    return Decision(
        id=decision_id,
        time=time,
        tool_name=tool_name,
        conversation_id=conversation,
        action=action,
        reason=reason,
        advice=_text_of(advising, advising),
        sources=tuple(f.source for f in findings),
        mode=mode,
    )


def fallback_decision(
    tool_name: str, conversation: str, time: datetime, on_error: Literal["open", "closed"]
) -> Decision:
    """The decision where no store can be asked; `guard.on_error` says whether the call runs."""
    action: Action = "deny" if on_error == "closed" else "allow"
    text = "The user's rules could not be read, and guard.on_error is closed."
    finding = Finding(DecisionSource(kind="self"), action, text, "Tell the user.")
    return decide("", time, tool_name, conversation, [finding])


def strictest(decisions: Sequence[Decision]) -> Decision:
    """The strictest of the decisions of several stores (at least one), with the advice of all."""
    found = max(decisions, key=lambda each: _ORDER[each.action])
    advice = " ".join(filter(None, (each.advice for each in decisions)))
    return replace(found, advice=advice)


def apply_answer(decision: Decision, agreed: bool) -> Decision:
    """Turn a decision to ask into allow or deny, as the user answered."""
    if decision.action != "ask":
        return decision
    reason = decision.reason.replace(_ASK_FIRST, "", 1)
    reason = "" if agreed else f"{reason} The user was asked and did not agree."
    return replace(decision, action="allow" if agreed else "deny", reason=reason)


def _text_of(findings: Iterable[Finding], remedies: Iterable[Finding]) -> str:
    texts = list(dict.fromkeys(f.text for f in findings))[:MAX_FINDINGS]
    return " ".join([*texts, *dict.fromkeys(f.remedy for f in remedies if f.remedy)])


def rule_finding(
    rule: ToolMemoryRule,
    mode: Mode,
    words: str = "",
    need: str = "",
    *,
    sure: bool = True,
    is_copy: bool = False,
) -> Finding:
    """The finding of a rule that a call breaks, surely or perhaps. `need`: what to do before.

    `words`: what the user typed that may take the rule back; they are asked whether to lift it.
    `is_copy`: the rule's store is lost, so that no words lift it.
    """
    day = rule.created_at.date().isoformat()
    who = f"The user said on {day}" if rule.is_users else f"A rule says on {day}"
    who = "The repository's rules say" if rule.is_team else who
    sentence = plain(rule.rule, _MAX_SENTENCE).removesuffix(".")
    text = f"{who}: {sentence}. {need}".strip()
    action: Action = "ask"
    remedy = "Get their consent, or leave it out."
    code = rule.id[:MIN_ID_LENGTH]
    if words:
        text += f" You said: {quoted(words)}. Let it through, and lift the rule ({code})?"
    elif sure and rule.effect == "deny":
        action = "deny"
        remedy = "Leave it out."
        if not is_copy:
            remedy += f" They may say `yes, this once`, or `lift {code}` to end the rule."
    source = DecisionSource(kind="rule", rule_id=rule.id, lifts=bool(words))
    return Finding(source, action, text, remedy, mode)


def times(number: int) -> str:
    """Spell a count: once, twice, 3 times."""
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def quoted(text: str) -> str:
    """Quote text from a call in one bounded line; it cannot close the quotation marks."""
    return f"“{plain(text.replace('“', chr(34)).replace('”', chr(34)), _MAX_QUOTED)}”"


def shown_arguments(arguments: Any, key: bytes) -> str:
    """Return arguments as the log shows them: JSON on one line, masked and cut.

    `key`: of the store, for the masks.
    """
    masked = Masker(key).value(_first_values(arguments, [_MAX_READ]))
    return plain(json.dumps(masked, ensure_ascii=False), MAX_SHOWN)


def call_in_words(view: CallView, key: bytes) -> str:
    """Return a call in a few words, for the user who lets it through. `key`: of the store."""
    if view.shells:
        texts = (value for _, _, value in view.scalars if isinstance(value, str))
        command = next(texts, "")[:_MAX_READ]
        given = Masker(key).text(command)  # before it is cut: half a secret would be shown
    else:
        given = shown_arguments(view.arguments, key)
    return f"{shown_name(view.tool, 60)} {quoted(given)}"


def _first_values(value: Any, left: list[int]) -> Any:
    """Return the first values of the arguments as JSON values, well beyond what the log shows.

    `left[0]`: characters that may still be read. Agents' frameworks also hand over values that JSON
    cannot hold, and those are shown as text.
    """
    if left[0] <= 0:
        return "…"
    left[0] -= _VALUE_COST
    if isinstance(value, Mapping):
        pairs = takewhile(lambda _: left[0] > 0, value.items())
        return {str(name)[:_MAX_READ]: _first_values(each, left) for name, each in pairs}
    if isinstance(value, list | tuple | set | frozenset):
        return [_first_values(each, left) for each in takewhile(lambda _: left[0] > 0, value)]
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if value.bit_length() < _MAX_BITS else "…"
    text = str(value)[:_MAX_READ]
    left[0] -= len(text)
    return text
