"""Findings of several sources about a call, and the one decision made of them.

Deny beats ask, ask beats advise. The reason of a stopped call begins with `toolmem: not run`. Text
from calls and errors is quoted in the reason.
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
from toolmem.models.protocols import Store
from toolmem.models.rules import RuleChange, ToolMemoryRule
from toolmem.models.tools import ToolSchema
from toolmem.rules.identity import code_of
from toolmem.store.storable import change_decision
from toolmem.text.display import marked, plain, shown_name
from toolmem.text.masking import Masker
from toolmem.text.stopped_calls import STOPPED
from toolmem.view.view import CallView

Mode = Literal["off", "shadow", "advise", "enforce"]

_ORDER: dict[str, int] = {"allow": 0, "advise": 1, "ask": 2, "deny": 3}
MAX_FINDINGS = 3  # that one reason names
_MAX_QUOTED = 200  # characters of text from a call
MAX_WHOLE = 2_000  # characters of a call that the user may let through; they see all of it
_MAX_SENTENCE = 500
MAX_SHOWN = 500  # characters of the arguments in the log
_MAX_READ = 8 * MAX_WHOLE  # characters of a call that are masked
_VALUE_COST = 40  # characters that each value counts besides its text: it bounds the nesting
_MAX_BITS = 1_000  # of a number among the arguments
_PLAINLY = (
    "the call plainly: the program and its words alone, with nothing that runs or hides them."
)
_ASK_FIRST = "; ask the user first"
ASK_OR_OMIT = "Get their consent, or leave it out."


class Finding(Struct):
    """One objection of one source against a call, with the action it calls for."""

    source: DecisionSource
    action: Action  # that the source wants, whatever its mode
    text: str  # for the agent
    remedy: str = ""  # what may be done instead
    notice: str = ""  # for the user alone: how to let the call through
    mode: Mode = "enforce"
    is_forced: bool = False  # the agent repeats the call by force, so it runs

    @property
    def effective(self) -> Action:
        """Return the action that counts: `action`, or a milder one if the mode or force says so."""
        if self.is_forced or self.mode in ("off", "shadow"):
            return "allow"
        return self.action if self.mode == "enforce" or self.action == "allow" else "advise"


def combine(
    decision_id: str,
    time: datetime,
    tool_name: str,
    conversation_id: str,
    findings: Sequence[Finding],
) -> Decision:
    """Combine the findings of all sources into one decision."""
    action: Action = max((f.effective for f in findings), key=lambda a: _ORDER[a], default="allow")
    findings = [_with_effect_of_yes(finding, findings) for finding in findings]
    reason = notice = ""
    if action in ("ask", "deny"):
        deciding = [f for f in findings if f.effective == action]
        asking = [f for f in findings if f.effective == "ask"]
        against = _text_of([*deciding, *asking], deciding)
        reason = f"{STOPPED}{_ASK_FIRST if action == 'ask' else ''}. {against}"
        if all(f.notice for f in deciding):  # else the user's words do not let it through
            notice = " ".join(dict.fromkeys(f.notice for f in deciding[:MAX_FINDINGS]))
    advising = [f for f in findings if f.effective == "advise"]
    mode: Literal["shadow", "advise", "enforce"] = "advise" if action == "advise" else "enforce"
    if findings and action == "allow" and not any(f.is_forced for f in findings):
        mode = "shadow"
    return Decision(
        id=decision_id,
        time=time,
        tool_name=tool_name,
        conversation_id=conversation_id,
        action=action,
        may_run=action in ("allow", "advise"),
        reason=reason,
        notice=notice,
        advice=_text_of(advising, advising),
        sources=tuple(f.source for f in findings),
        mode=mode,
    )


def fallback_decision(
    tool_name: str, conversation_id: str, time: datetime, on_error: Literal["open", "closed"]
) -> Decision:
    """Decide about a call if no store can be read: deny if `on_error` is closed, else allow."""
    action: Action = "deny" if on_error == "closed" else "allow"
    text = "The user's rules could not be read, and guard.on_error is closed."
    finding = Finding(DecisionSource(kind="self"), action, text, "Tell the user.")
    return combine("", time, tool_name, conversation_id, [finding])


def plain_allow(tool_name: str, conversation_id: str, time: datetime) -> Decision:
    """Make the decision to allow a call against which nothing was found."""
    return combine("", time, tool_name, conversation_id, [])


def strictest(decisions: Sequence[Decision]) -> Decision:
    """Return the strictest of several stores' decisions (at least one), with the advice of all."""
    found = max(decisions, key=lambda each: _ORDER[each.action])
    advice = " ".join(filter(None, (each.advice for each in decisions)))
    return replace(found, advice=advice)


def log_outcome(store: Store, workspace: str, decision: Decision, failed: bool | None) -> None:
    """Log how the call of a decision ended. The user's own mark (`is_wrong`) stays."""
    outcome = {True: "failed", False: "worked", None: "unknown"}[failed]

    def ended(kept: Decision) -> Decision:
        return replace(decision, outcome=outcome, is_wrong=kept.is_wrong)

    change_decision(store, workspace, decision, ended)


def apply_answer(decision: Decision, agreed: bool) -> Decision:
    """Turn a decision to ask into allow or deny, as the user answered."""
    if decision.action != "ask":
        return decision
    reason = decision.reason.replace(_ASK_FIRST, "", 1)
    reason = "" if agreed else f"{reason} The user was asked and did not agree."
    action: Action = "allow" if agreed else "deny"
    return replace(decision, action=action, may_run=agreed, reason=reason, notice="")


def without_consent(decision: Decision) -> Decision:
    """Copy a decision. A yes to the copy runs the call but lifts no rule: a program may say it."""
    sources = tuple(replace(each, lifts=False, unknown="") for each in decision.sources)
    return replace(decision, sources=sources)


def _text_of(findings: Iterable[Finding], remedies: Iterable[Finding]) -> str:
    texts = list(dict.fromkeys(f.text for f in findings))[:MAX_FINDINGS]
    return " ".join([*texts, *dict.fromkeys(f.remedy for f in remedies if f.remedy)])


def _with_effect_of_yes(finding: Finding, findings: Sequence[Finding]) -> Finding:
    """Add what a yes to the question does: it lifts the rule if nothing else is asked."""
    if not finding.source.asks or finding.action != "ask":
        return finding
    lifts = finding.source.lifts and len({f.text for f in findings}) == 1
    answer = "Yes lifts the rule for good." if lifts else "Yes lets this call run alone."
    source = replace(finding.source, lifts=lifts)
    return replace(finding, source=source, text=f"{finding.text} {answer}")


def rule_finding(
    rule: ToolMemoryRule,
    mode: Mode,
    asked: RuleChange | None = None,
    need: str = "",
    *,
    sure: bool = True,
    unknown: str = "",
    is_denied: bool = False,
    is_copy: bool = False,
    only_asks: str = "",
    asks_user: bool = False,
) -> Finding:
    """Make the finding that a call breaks a rule, or that it may break it (`sure` is False).

    `asked`: a later message that may lift the rule. If a person can answer (`asks_user`), they are
    asked whether it does. `need`: a sentence on what has to come first. `unknown`: the key under
    which a yes is kept, if it is unclear whether the rule means the call. `is_denied`: deny an
    unclear call, too. `is_copy`: the rule binds from a copy, so no reply lifts it. `only_asks`: the
    name of a store whose rules may only ask, such as "A store that is not trusted".
    """
    if only_asks:
        text = f"{only_asks} has this rule: {quoted(rule.rule)}."
        source = DecisionSource(kind="rule", rule_id=rule.id)
        return Finding(source, "ask", text, ASK_OR_OMIT, mode=mode)
    asked = None if is_copy else asked
    who = "The user said" if rule.is_users else "A rule says"
    who = "The repository's rules say" if rule.is_team else f"{who} on {rule.created_at:%Y-%m-%d}"
    sentence = plain(rule.rule, _MAX_SENTENCE).removesuffix(".")
    instead = f" (in place of {quoted(rule.replaces)})" if rule.replaces else ""
    doubt = "" if sure else "Not sure: this may be meant. "
    text = f"{doubt}{who}: {sentence}{instead}. {need}".strip()
    action: Action = "deny" if is_denied or (sure and rule.effect == "deny") else "ask"
    remedy = ASK_OR_OMIT
    code = code_of(rule)
    once = "" if asks_user and action == "ask" else "To allow it once, type: yes, this once. "
    how = "Stopped" if action == "deny" else "Asked about"
    notice = f"{how} by {quoted(sentence)}. {once}To lift the rule: lift {code}"
    if action == "deny":
        remedy = "Do without it, or say which rule forbids it."
    if unknown and (is_denied or not asks_user):
        remedy = f"{'Write' if is_denied else 'Get their consent, or write'} {_PLAINLY}"
    if asked is not None and asked.what == "replaced":
        text += f" It is to be replaced by {quoted(asked.words)}, once the user says yes."
    if asked is not None and action == "deny" and asks_user and sure:
        said = quoted(asked.words.rstrip(" ."))
        text += f" You said: {said}. Let it through, and lift the rule?"
        action = "ask"
        remedy = ""
        notice = ""
    elif asked is not None and asked.what != "replaced":
        text += f" Later they said: {quoted(asked.words)}. Whether that ends it is not decided."
        remedy = "Ask the user whether the rule still holds."
    asks = asked is not None
    lifts = asks and asks_user and sure
    source = DecisionSource(kind="rule", rule_id=rule.id, asks=asks, lifts=lifts, unknown=unknown)
    return Finding(source, action, text, remedy, "" if is_copy else notice, mode)


def unreadable_call(error: Exception, mode: Mode) -> Finding:
    """Make the finding on a call that cannot be read, such as one with a number of 5,000 digits."""
    text = f"Not sure: this call cannot be read ({type(error).__name__})."
    remedy = "Write it plainly."
    return Finding(DecisionSource(kind="self"), "ask", text, remedy, mode=mode)


def unreadable_rules(
    error: Exception, on_error: Literal["open", "closed"], has_copy: bool
) -> list[Finding]:
    """Make the finding that rules cannot be read; [] if their copy binds and `on_error` is open."""
    if has_copy and on_error == "open":
        return []
    text = f"The user's rules could not be read ({type(error).__name__})."
    action: Action = "deny" if on_error == "closed" else "advise"
    return [Finding(DecisionSource(kind="self"), action, text, "Tell the user.")]


def schema_findings(
    arguments: Any, schema: ToolSchema | None, mode: Mode, key: bytes
) -> list[Finding]:
    """Find arguments that do not fit the tool's schema. `key`: the store's key, to mask secrets."""
    if schema is None or mode == "off":
        return []
    from toolmem.judge.schema import check

    problems = check(arguments, schema)
    if not problems:
        return []
    messages = Masker(key).text("; ".join(problem.message for problem in problems[:3]))
    text = f"The arguments do not fit the tool: {quoted(messages)}."
    return [Finding(DecisionSource(kind="schema"), "deny", text, mode=mode)]


def times(number: int) -> str:
    """Spell a count: once, twice, 3 times."""
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def quoted(text: str) -> str:
    """Put text from a call in quotation marks: one line, cut to 200 characters."""
    return f"“{plain(text.replace('“', chr(34)).replace('”', chr(34)), _MAX_QUOTED)}”"


def shown_arguments(arguments: Any, key: bytes) -> str:
    """Return the arguments for the log: one line of JSON, cut to 500 characters.

    `key`: the store's key, to mask secrets.
    """
    masked = Masker(key).value(_first_values(arguments, [_MAX_READ]))
    return plain(json.dumps(masked, ensure_ascii=False), MAX_SHOWN)


def call_in_words(view: CallView, key: bytes) -> str:
    """Return the whole call as text, for the user who may let it run; "" if it is too long.

    `key`: the store's key, to mask secrets.
    """
    texts = [value for _, _, value in view.scalars if isinstance(value, str)]
    if view.shells and len(texts) == 1:
        given = texts[0]
        is_whole = len(texts[0]) <= MAX_WHOLE
    else:
        left = [_MAX_READ]
        masked = Masker(key).value(_first_values(view.arguments, left))
        given = json.dumps(masked, ensure_ascii=False)
        is_whole = left[0] > 0
    given = plain(marked(Masker(key).text(given[:_MAX_READ])), MAX_WHOLE + 1)
    if not is_whole or len(given) > MAX_WHOLE:
        return ""
    return f"{shown_name(view.tool, 60)} “{given.replace('“', chr(34)).replace('”', chr(34))}”"


def _first_values(value: Any, left: list[int]) -> Any:
    """Return the first values of the arguments, as JSON. `left[0]`: how many characters may follow.

    Values that JSON cannot hold become text: agents' frameworks pass such values, too.
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
