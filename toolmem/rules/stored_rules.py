"""A rule as the store keeps it, and back; and the tombstone that a deleted rule leaves."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from toolmem.late import late_logger
from toolmem.late_dataclasses import dataclass
from toolmem.light_models import Priority, RuleStatus, Said, ToolMemoryRule
from toolmem.rows import own_json
from toolmem.rules.identity import RULE_PREFIX, namespace_of, same_text

if TYPE_CHECKING:
    from toolmem.rules.evidence import UserEvidence
    from toolmem.stored import RawRecord

logger = late_logger("toolmem.rules")

PRIORITIES: tuple[Priority, ...] = get_args(Priority)  # the most urgent first
RANK = {priority: rank for rank, priority in enumerate(PRIORITIES)}
_DELETED = "deleted"
THIS_SESSION = "this-session"  # the tag of rules that bind in the session in which they were said, and nowhere else
EVIDENCE = "evidence"  # of a record: why it binds less than it did
# How stores write these; inside a rule's text the quotes are escaped.
_TOMBSTONE, _ACTIVE, _AGENTS = '"deleted":true', '"status":"active"', '"by":"agent"'
_NOT_ACTIVE = tuple(f'"status":"{status}"' for status in get_args(RuleStatus) if status != "active")
_PRIORITY = '"priority":"'
_EXPIRES = '"expires_at":"'
_CONDITION, _NO_CONDITION = '"when":{', '"when":null}'  # it stands last, so that nothing in it is a field of the rule


@dataclass(frozen=True, slots=True)
class DamagedRule:
    """A record where a rule should be, which holds none."""

    namespace: str
    key: str
    problem: str
    version: int

    def __str__(self) -> str:
        return f"{self.namespace}/{self.key}: {self.problem}"


class StoredRule(NamedTuple):
    """A rule and the version of its record."""

    rule: ToolMemoryRule
    version: int


class Tombstone(NamedTuple):
    """What a deleted rule leaves in its place: without its text, and with a version that goes on counting.

    So a writer that had read the rule finds that it is gone, even where it was put again since, and capture finds that
    the user deleted what this sentence says.
    """

    rule_id: str
    sentence: str  # the id that a rule of the same text gets; "" where capture may bring it back
    version: int
    said: Said | None = None  # session and turn of the rule; None: not known


def tombstone_value(sentence: str, said: Said | None = None, evidence: UserEvidence | None = None) -> dict[str, Any]:
    """What is stored in place of a deleted rule, without words. `said`: where it was; `evidence`: that its user did."""
    value: dict[str, Any] = {_DELETED: True, "sentence": sentence}
    if said is not None and said.session:
        value |= {"session": said.session, "turn": said.turn}
    return value | ({} if evidence is None else {EVIDENCE: evidence._replace(words="")._asdict()})


def rule_value(rule: ToolMemoryRule, evidence: UserEvidence | None = None) -> dict[str, Any]:
    """What is stored of a rule. `evidence`: that its user wants it to bind less than what stood there before."""
    value = rule.model_dump(mode="json")
    if evidence is None:
        return value
    when = value.pop("when")  # stands last: see `at_a_glance`
    return {**value, EVIDENCE: evidence._asdict(), "when": when}


def is_tombstone(value: Any) -> bool:
    """Tell what a deleted rule left from a rule."""
    return isinstance(value, dict) and value.get(_DELETED) is True


class StoredRules(NamedTuple):
    """What lies under the keys of rules."""

    rules: list[StoredRule]
    tombstones: list[Tombstone]
    damaged: list[DamagedRule]

    def active(self, now: datetime) -> list[ToolMemoryRule]:
        return [row.rule for row in self.rules if row.rule.holds_at(now)]

    def with_id(self, rule_id: str) -> StoredRule | None:
        return next((row for row in self.rules if row.rule.id == rule_id), None)

    def with_text(self, text: str) -> StoredRule | None:
        """The oldest that says the same."""
        wanted = same_text(text)
        same = [row for row in self.rules if same_text(row.rule.rule) == wanted]
        return min(same, key=lambda row: _age(row.rule), default=None)

    def deleted(self, sentence: str) -> list[Tombstone]:
        """What the rules left that said this."""
        return [tombstone for tombstone in self.tombstones if tombstone.sentence == sentence]

    def free_version(self, rule_id: str) -> int:
        """At which a new rule of this id is written: over its tombstone, over a damaged record, or as the first."""
        versions = {tombstone.rule_id: tombstone.version for tombstone in self.tombstones}
        versions |= {_id_in(each.key): each.version for each in self.damaged}
        return versions.get(rule_id, 0)

    def taken(self, sentence: str) -> set[str]:
        """Ids that a new rule of this sentence cannot get: of rules, damaged records, other sentences' tombstones."""
        return {
            *(row.rule.id for row in self.rules),
            *(_id_in(each.key) for each in self.damaged),
            *(each.rule_id for each in self.tombstones if each.sentence not in ("", sentence)),
        }


def first_spelling(rules: Iterable[ToolMemoryRule], default: str = "") -> str:
    """A tool's name as the oldest of these rules writes it."""
    oldest = min(rules, key=_age, default=None)
    return default if oldest is None else oldest.tool_name


def by_priority(rules: Iterable[ToolMemoryRule]) -> list[ToolMemoryRule]:
    """Priority, then the freshest, then the id."""
    return sorted(rules, key=lambda rule: (RANK[rule.priority], *freshness(rule)))


def freshness(rule: ToolMemoryRule) -> tuple[float, str]:
    """Sorts the freshest first."""
    return -rule.updated_at.timestamp(), rule.id


def _age(rule: ToolMemoryRule) -> Any:
    return rule.created_at, rule.id


def _id_in(key: str) -> str:
    return key.removeprefix(RULE_PREFIX)


# ---------------------------------------------------------------- reading


def read_rule(namespace: str, key: str, value: Any) -> ToolMemoryRule:
    """Raises ValueError where the value is no rule of this namespace and key."""
    rule = _rule(value)
    if key != RULE_PREFIX + rule.id:
        raise ValueError(f"its id is {rule.id!r}")
    if namespace != namespace_of(rule.tool_name):
        raise ValueError(f"its tool is {rule.tool_name!r}")
    if rule.created_at.tzinfo is None or rule.updated_at.tzinfo is None:
        raise ValueError("a time without a zone")
    return rule


def _rule(value: Any) -> ToolMemoryRule:
    """Whose condition cannot be read only reminds."""
    try:
        return ToolMemoryRule.model_validate(value)
    except ValueError:
        if not isinstance(value, dict) or not value.keys() & _CHECKS:
            raise
        rest = {name: each for name, each in value.items() if name not in _CHECKS}
        rule = ToolMemoryRule.model_validate({**rest, "unchecked": DAMAGED})
        logger.warning("the condition of rule %r is damaged: it only reminds", rule.id)
        return rule


def read_stored(records: Sequence[RawRecord]) -> StoredRules:
    """Damaged records are logged, and hide no other."""
    found = StoredRules([], [], [])
    met = [_met.get(each[:3]) for each in records]
    values = iter(_values([each for each, rule in zip(records, met, strict=True) if rule is None]))
    for each, known in zip(records, met, strict=True):
        try:
            if known is not None:
                found.rules.append(StoredRule(_copy(known), each.version))
                continue
            value = next(values)
            if isinstance(value, Exception):
                raise value
            if is_tombstone(value):
                found.tombstones.append(_tombstone(each, value))
            else:
                rule = read_rule(each.namespace, each.key, value)
                found.rules.append(StoredRule(rule, each.version))
                _keep(each, rule)
        except (ValueError, RecursionError) as error:
            found.damaged.append(DamagedRule(each.namespace, each.key, str(error), each.version))
            logger.warning("record %r of %r is no rule and is left out: %s", each.key, each.namespace, error)
    return found


def _tombstone(record: RawRecord, value: dict[str, Any]) -> Tombstone:
    session, turn = value.get("session"), value.get("turn")
    known = isinstance(session, str) and (turn is None or type(turn) is int)
    said = Said(by="user", session=str(session), turn=turn) if known else None
    return Tombstone(_id_in(record.key), str(value.get("sentence", "")), record.version, said)


DAMAGED = "its stored condition cannot be read"
_CHECKS = {"effect", "when", "unchecked"}

# Rules by what they were read from, from the second reading on: a process that answers many prompts meets them again.
_met: dict[tuple[str, ...], ToolMemoryRule | None] = {}
_MOST_MET, _LONGEST_MET = 2000, 4000  # rules; characters of a record


def _keep(record: RawRecord, rule: ToolMemoryRule) -> None:
    if len(record.text) <= _LONGEST_MET:
        if len(_met) >= _MOST_MET:
            _met.clear()
        place = record[:3]
        _met[place] = _copy(rule) if place in _met else None


def _copy(rule: ToolMemoryRule) -> ToolMemoryRule:
    """Its own: whoever is handed a rule may change it. What was said of it is frozen."""
    return ToolMemoryRule(
        id=rule.id,
        tool_name=rule.tool_name,
        rule=rule.rule,
        priority=rule.priority,
        source=rule.source,
        tags=rule.tags.copy(),
        created_at=rule.created_at,
        updated_at=rule.updated_at,
        status=rule.status,
        said=rule.said,
        effect=rule.effect,
        unchecked=rule.unchecked,
        expires_at=rule.expires_at,
        superseded_by=rule.superseded_by,
        when=rule.when if rule.when is None else own_json(rule.when),
    )


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


def raw_value(text: str) -> dict[str, Any]:
    """As it is stored; `{"damaged": text}` where that is no JSON object."""
    value = _value(text)
    return value if isinstance(value, dict) else {"damaged": text}


def may_hold(value: dict[str, Any], now: datetime) -> bool:
    """Whether a record as it is stored is of an active rule; a damaged one is told."""
    if value.get("status", "active") != "active":
        return False
    try:
        return datetime.fromisoformat(value["expires_at"]) > now
    except (KeyError, TypeError, ValueError):
        return True


def at_a_glance(records: Iterable[RawRecord]) -> tuple[list[RawRecord], list[RawRecord]]:
    """(critical or not plain, plainly high or an agent's note): what a prompt may hold, told apart without being read.

    One that expires is not plain. Normal rules that are no agent's, tombstones and rules that are not active are
    passed over.
    """
    first: list[RawRecord] = []
    further: list[RawRecord] = []
    for record in records:
        text = record.text
        if not text.endswith(_NO_CONDITION) and _CONDITION in text:
            text = text.partition(_CONDITION)[0]
        at = text.find(_PRIORITY) + len(_PRIORITY)
        note = text.startswith("normal", at)
        if note and _AGENTS not in text:
            continue
        if _ACTIVE not in text and (_TOMBSTONE in text or any(mark in text for mark in _NOT_ACTIVE)):
            continue
        plain = (note or text.startswith("high", at)) and _EXPIRES not in text
        (further if plain else first).append(record)
    return first, further


def is_plainly_high(record: RawRecord) -> bool:
    """Tell a high rule, without reading it."""
    return record.text.startswith("high", record.text.find(_PRIORITY) + len(_PRIORITY))
