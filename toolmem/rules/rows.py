"""A rule as the store keeps it, and back."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

from pydantic import TypeAdapter, ValidationError

from toolmem.config.names import hint
from toolmem.errors import RequestError
from toolmem.ports import RawRecord
from toolmem.rules.identity import RULE_PREFIX, namespace_of
from toolmem.schema import ToolMemoryRule

logger = logging.getLogger("toolmem.rules")

Priority = Literal["critical", "high", "normal"]
Source = Literal["user_explicit", "post_turn", "programmatic"]
PRIORITIES: tuple[Priority, ...] = get_args(Priority)  # the most urgent first
SOURCES: tuple[Source, ...] = get_args(Source)
RANK = {priority: rank for rank, priority in enumerate(PRIORITIES)}
_RULES = TypeAdapter(list[ToolMemoryRule])


@dataclass(frozen=True, slots=True)
class DamagedRule:
    """A record where a rule should be, which holds none."""

    namespace: str
    key: str
    problem: str
    version: int


class StoredRule(NamedTuple):
    """A rule, and what its next writer has to know of its record."""

    rule: ToolMemoryRule
    version: int
    born: int  # when the store first saw this record; another one: deleted and put again meanwhile


def value_of(rule: ToolMemoryRule) -> dict[str, Any]:
    return rule.model_dump(mode="json")


def read_rule(namespace: str, key: str, value: str | Mapping[str, Any]) -> ToolMemoryRule:
    """Of a value or its JSON. Raises ValueError where it is no rule of this namespace and key."""
    try:
        if isinstance(value, str):
            rule = ToolMemoryRule.model_validate_json(value)
        else:
            rule = ToolMemoryRule.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}".removeprefix(": ")) from None
    _require_place(rule, namespace, key)
    return rule


def _require_place(rule: ToolMemoryRule, namespace: str, key: str) -> None:
    if key != RULE_PREFIX + rule.id:
        raise ValueError(f"its id is {rule.id!r}")
    if namespace != namespace_of(rule.tool_name):
        raise ValueError(f"its tool is {rule.tool_name!r}")
    if rule.created_at.tzinfo is None or rule.updated_at.tzinfo is None:
        raise ValueError("a time without a zone")


def read_rows(records: Sequence[RawRecord]) -> tuple[list[StoredRule], list[DamagedRule]]:
    """The rules, and the records that are damaged: those are logged, and hide no other."""
    try:  # all at once, which takes half the time; one by one where a record is damaged
        rules = _RULES.validate_json("[" + ",\n".join([record.text for record in records]) + "]")
        for rule, record in zip(rules, records, strict=True):
            _require_place(rule, record.namespace, record.key)
        return [StoredRule(rule, each.version, each.born) for rule, each in zip(rules, records, strict=True)], []
    except ValueError:
        return _read_one_by_one(records)


def _read_one_by_one(records: Sequence[RawRecord]) -> tuple[list[StoredRule], list[DamagedRule]]:
    rows: list[StoredRule] = []
    damaged: list[DamagedRule] = []
    for each in records:
        try:
            rows.append(StoredRule(read_rule(each.namespace, each.key, each.text), each.version, each.born))
        except ValueError as error:
            damaged.append(DamagedRule(each.namespace, each.key, str(error), each.version))
            logger.warning("record %r of %r is no rule and is left out: %s", each.key, each.namespace, error)
    return rows, damaged


def at_a_glance(records: Iterable[RawRecord]) -> tuple[list[RawRecord], list[RawRecord]]:
    """(those that have to be read, those that are plainly of high priority); plainly normal ones are passed over.

    A look at the JSON as stores write it: inside a rule's text its quotes are escaped. What is not plain is to be read.
    """
    unread: list[RawRecord] = []
    high: list[RawRecord] = []
    for record in records:
        if '"priority":"normal"' in record.text:
            continue
        (high if '"priority":"high"' in record.text else unread).append(record)
    return unread, high


def by_priority(rules: Iterable[ToolMemoryRule]) -> list[ToolMemoryRule]:
    """Priority, then the freshest, then the id."""
    return sorted(rules, key=lambda rule: (RANK[rule.priority], -rule.updated_at.timestamp(), rule.id))


def read_choice(given: Any, field: str, allowed: tuple[str, ...]) -> Any:
    """One of `allowed`, or None. Raises RequestError with the nearest name."""
    if given is None or (isinstance(given, str) and given in allowed):
        return given
    near = f" ({hint(given, allowed)})" if isinstance(given, str) else ""
    raise RequestError(f"{field}: expected one of {', '.join(allowed)}; got {given!r}{near}"[:300], field=field)


def merged_tags(stored: Iterable[str], added: Iterable[str]) -> list[str]:
    return list(dict.fromkeys([*stored, *added]))
