"""A rule as the store keeps it, and back."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from toolmem.config.names import nearest
from toolmem.errors import RequestError
from toolmem.light_models import Priority, RuleStatus, Source, ToolMemoryRule
from toolmem.rules.identity import RULE_PREFIX, namespace_of

if TYPE_CHECKING:
    from toolmem.stored import RawRecord

logger = logging.getLogger("toolmem.rules")

PRIORITIES: tuple[Priority, ...] = get_args(Priority)  # the most urgent first
SOURCES: tuple[Source, ...] = get_args(Source)
RANK = {priority: rank for rank, priority in enumerate(PRIORITIES)}
_DELETED = "deleted"
_GRAVE_MARK = '"deleted":true'
_NOT_ACTIVE = tuple(f'"status":"{status}"' for status in get_args(RuleStatus) if status != "active")
_HIGH = '"priority":"high"'
_BY_AN_AGENT = '"by":"agent"'
STATUSES: tuple[RuleStatus, ...] = get_args(RuleStatus)


@dataclass(frozen=True, slots=True)
class DamagedRule:
    """A record where a rule should be, which holds none."""

    namespace: str
    key: str
    problem: str
    version: int


class StoredRule(NamedTuple):
    """A rule and the version of its record."""

    rule: ToolMemoryRule
    version: int


class Grave(NamedTuple):
    """What a deleted rule leaves in its place: without its text, and with a version that goes on counting.

    So a writer that had read the rule finds that it is gone, even where it was put again since, and capture finds that
    the user deleted what this sentence says.
    """

    rule_id: str
    sentence: str  # the id that a rule of the same text gets; "" where capture may bring it back
    version: int


class Rows(NamedTuple):
    """What lies under the keys of rules."""

    rules: list[StoredRule]
    graves: list[Grave]
    damaged: list[DamagedRule]


def grave_value(sentence: str) -> dict[str, Any]:
    return {_DELETED: True, "sentence": sentence}


def is_grave(value: Any) -> bool:
    return isinstance(value, dict) and value.get(_DELETED) is True


def value_of(rule: ToolMemoryRule) -> dict[str, Any]:
    return rule.model_dump(mode="json")


def read_rule(namespace: str, key: str, value: Any) -> ToolMemoryRule:
    """Raises ValueError where the value is no rule of this namespace and key."""
    rule = ToolMemoryRule.model_validate(value)
    if key != RULE_PREFIX + rule.id:
        raise ValueError(f"its id is {rule.id!r}")
    if namespace != namespace_of(rule.tool_name):
        raise ValueError(f"its tool is {rule.tool_name!r}")
    if rule.created_at.tzinfo is None or rule.updated_at.tzinfo is None:
        raise ValueError("a time without a zone")
    return rule


def read_rows(records: Sequence[RawRecord]) -> Rows:
    """Damaged records are logged, and hide no other."""
    rows = Rows([], [], [])
    for each, value in zip(records, _values(records), strict=True):
        try:
            if isinstance(value, Exception):
                raise value
            if is_grave(value):
                sentence = str(value.get("sentence", ""))
                rows.graves.append(Grave(each.key.removeprefix(RULE_PREFIX), sentence, each.version))
            else:
                rows.rules.append(StoredRule(read_rule(each.namespace, each.key, value), each.version))
        except (ValueError, RecursionError) as error:
            rows.damaged.append(DamagedRule(each.namespace, each.key, str(error), each.version))
            logger.warning("record %r of %r is no rule and is left out: %s", each.key, each.namespace, error)
    return rows


def _values(records: Sequence[RawRecord]) -> list[Any]:
    """Of each the value, or why it has none: all at once, which takes half the time, unless one is damaged."""
    with suppress(ValueError, RecursionError):
        values: list[Any] = json.loads("[" + ",".join([record.text for record in records]) + "]")
        if len(values) == len(records):  # else one of them is no JSON by itself: `1, 2`
            return values
    return [_value(record.text) for record in records]


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        return error


class Glance(NamedTuple):
    """Records of active rules, told apart without being read."""

    unread: list[RawRecord]  # critical, or not plain
    high: list[RawRecord]  # plainly high, and not an agent's
    notes: list[RawRecord]  # plainly an agent's, high or normal

    def plainly_high(self) -> list[RawRecord]:
        return [*self.high, *(each for each in self.notes if _HIGH in each.text)]


def at_a_glance(records: Iterable[RawRecord]) -> Glance:
    """Normal rules that are no agent's, graves and rules that are not active are passed over.

    A look at the JSON as stores write it: inside a rule's text its quotes are escaped. What is not plain is to be read.
    """
    glance = Glance([], [], [])
    for record in records:
        text = record.text
        normal, agents = '"priority":"normal"' in text, _BY_AN_AGENT in text
        if (normal and not agents) or _GRAVE_MARK in text or any(mark in text for mark in _NOT_ACTIVE):
            continue
        high = _HIGH in text
        (glance.notes if agents and (normal or high) else glance.high if high else glance.unread).append(record)
    return glance


def active(rules: Iterable[ToolMemoryRule]) -> list[ToolMemoryRule]:
    return [rule for rule in rules if rule.status == "active"]


def by_priority(rules: Iterable[ToolMemoryRule]) -> list[ToolMemoryRule]:
    """Priority, then the freshest, then the id."""
    return sorted(rules, key=lambda rule: (RANK[rule.priority], -rule.updated_at.timestamp(), rule.id))


def read_choice(given: Any, field: str, allowed: tuple[str, ...]) -> Any:
    """One of `allowed`, or None. Raises RequestError with the nearest name."""
    if given is None or (isinstance(given, str) and given in allowed):
        return given
    meant = nearest(given, allowed) if isinstance(given, str) else None
    near = "" if meant is None else f" (did you mean {meant!r}?)"
    raise RequestError(f"{field}: expected one of {', '.join(allowed)}; got {given!r}{near}"[:300], field=field)


def merged_tags(stored: Iterable[str], added: Iterable[str]) -> list[str]:
    return list(dict.fromkeys([*stored, *added]))
