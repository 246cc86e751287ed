"""Rules of a file as the guard checks them: JSON Lines, each a sentence with a tool, and its condition or none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolmem.errors import RequestError
from toolmem.guard.call_conditions import check_condition
from toolmem.guard.decision import CheckedRule
from toolmem.guard.tool_classes import class_schema, is_scope
from toolmem.guard.word_lists import split
from toolmem.light_models import ToolSchema
from toolmem.sentences.said_conditions import asks_first, condition_of

_FIELDS = split(
    "id tool_name rule effect when unchecked status said priority source tags created_at updated_at expires_at "
    "superseded_by"
)
_OF_EVERY_TOOL = "__unscoped__"  # as a stored rule has it
_EFFECTS = frozenset(("deny", "ask", "remind"))


def read_rules(
    entries: Iterable[tuple[str, Any]], tools: Sequence[ToolSchema]
) -> tuple[dict[str, list[CheckedRule]], list[tuple[str, str]]]:
    """(rules by tool, those that only remind with the reason). `entries`: (place, object).

    A rule without `when` is read as a sentence: with `tool_name` for that tool alone, without one for every tool that
    it means. Raises RequestError with the place.
    """
    rules: dict[str, list[CheckedRule]] = defaultdict(list)
    reminders: list[tuple[str, str]] = []
    for number, (place, given) in enumerate(entries, 1):
        text, tool = _read(place, given)
        rule_id = str(given.get("id") or f"r{number}")
        if given.get("when") is not None:
            effect = given.get("effect") or ("ask" if asks_first(text) else "deny")
            when = check_condition(given["when"], f"{place}: when")
            rules[tool].append(CheckedRule(rule_id, text, effect, when))
            continue
        if given.get("effect") == "remind":
            reminders.append((text, given.get("unchecked") or "it says so"))
            continue
        at_hand = [*tools, class_schema(tool)] if is_scope(tool) else tools
        made = condition_of(text, at_hand, [tool] if tool else ())
        bound = {name: when for name, when in made.when.items() if not tool or name == tool}
        if not bound:
            reminders.append((text, made.reason or "it speaks of another tool"))
        for name, condition in bound.items():
            rules[name].append(CheckedRule(rule_id, text, given.get("effect") or made.effect, condition))
    return dict(rules), reminders


def _read(place: str, given: Any) -> tuple[str, str]:
    """(the sentence, the tool or "")."""
    if not isinstance(given, Mapping):
        raise RequestError(f"{place}: expected a rule as an object with `rule`", field="rules")
    unknown = sorted(set(given) - _FIELDS)
    if unknown:
        raise RequestError(f"{place}: `{unknown[0]}` is no field of a rule", field="rules")
    text, tool = given.get("rule"), given.get("tool_name") or ""
    if not isinstance(text, str) or not text.strip():
        raise RequestError(f"{place}: `rule`: write the sentence", field="rules")
    if not isinstance(tool, str):
        raise RequestError(f"{place}: `tool_name`: expected text", field="rules")
    if given.get("effect") not in {None, *_EFFECTS}:
        raise RequestError(f"{place}: `effect`: expected deny, ask or remind", field="rules")
    return text.strip(), "" if tool == _OF_EVERY_TOOL else tool
