"""The rules of a store that agents are held to, with those that the journal keeps where the store lost them.

A rule is lost where its record is gone, damaged, or binds less than it did, and bears no evidence that its user wanted
that. Rows with evidence are believed, whoever wrote them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from toolmem.light_models import ToolMemoryRule
from toolmem.rules.evidence import UserEvidence
from toolmem.rules.identity import namespace_of, rule_key
from toolmem.rules.loosening import binds, binds_less
from toolmem.rules.stored_rules import EVIDENCE, is_tombstone, raw_value, read_rule
from toolmem.store.holding import holds_agents
from toolmem.store.journal_changes import Changes, KeptRule, Place, dump, journal_here, store_key
from toolmem.store.keyed import encode_value
from toolmem.store.known_stores import id_at
from toolmem.store.masked import unmasked
from toolmem.stored import RawRecord


class LostRule(NamedTuple):
    """A rule that the journal keeps, and what its store has in its place."""

    kept: KeptRule
    held: RawRecord | None


def location_of(store: Any) -> str:
    """Of the file; "" of a store that is none."""
    location = str(getattr(unmasked(store), "location", ""))
    return "" if location == ":memory:" or "://" in location else location


def with_kept(
    store: Any, workspace: str, namespaces: Sequence[str] | None, records: list[RawRecord], now: datetime
) -> list[RawRecord]:
    """The records of rules as they hold: those that the store lost as the journal keeps them."""
    location = location_of(store)
    if not location or not holds_agents(store):
        return records
    kept = journal_here().rules(store_key(location), workspace, namespaces)
    lost = lost_rules(kept, records, now)
    if not lost:
        return records
    instead = {(each.kept.namespace, each.kept.key): _record(each) for each in lost}
    others = [record for record in records if (record.namespace, record.key) not in instead]
    return sorted([*others, *instead.values()], key=lambda record: (record.namespace, record.key))


def _record(lost: LostRule) -> RawRecord:
    """At the version that whoever writes it anew finds."""
    return RawRecord(*lost.kept, *((lost.held.version, lost.held.born, lost.held.modified) if lost.held else (0, 0, 0)))


def lost_rules(kept: Iterable[KeptRule], records: Iterable[RawRecord], now: datetime) -> list[LostRule]:
    """Those of `kept` that their store lost. `records`: what it has."""
    held = {(record.namespace, record.key): record for record in records}
    lost = []
    for each in kept:
        there = held.get((each.namespace, each.key))
        if (there is None or there.text != each.text) and _is_lost(each, there, now):
            lost.append(LostRule(each, there))
    return lost


def _is_lost(kept: KeptRule, there: RawRecord | None, now: datetime) -> bool:
    rule = rule_in(kept.namespace, kept.key, kept.text)
    if rule is None or not binds(rule, now):
        return False
    return there is None or (not evidence_in(there.text) and binds_less(rule, rule_in(*there[:3]), now))


def rule_in(namespace: str, key: str, text: str) -> ToolMemoryRule | None:
    """None where it is a tombstone, or no rule."""
    value = raw_value(text)
    try:
        return None if is_tombstone(value) else read_rule(namespace, key, value)
    except ValueError:
        return None


def evidence_in(text: str) -> str:
    """Of a record, as JSON; "" where there is none."""
    evidence = raw_value(text).get(EVIDENCE) if f'"{EVIDENCE}"' in text else None
    known = isinstance(evidence, dict) and isinstance(evidence.get("kind"), str)
    return json.dumps(evidence, ensure_ascii=True)[:_LONGEST] if known else ""


_LONGEST = 2000  # characters of evidence


# ---------------------------------------------------------------- the journal as rules change


def note_written(
    store: Any,
    workspace: str,
    before: ToolMemoryRule | None,
    namespace: str,
    key: str,
    text: str,
    evidence: UserEvidence | None,
    now: datetime,
    *,
    instead: bool = False,
) -> None:
    """A record of a rule was written: `before` stood in its place. A journal that cannot be written learns it later.

    `instead`: another rule is put in its place, so that there is nothing to tell.
    """
    location = location_of(store)
    if not location:
        return
    journal, at = journal_here(), store_key(location)
    known = journal.store(at, workspace)
    if known is None and not holds_agents(store):
        return
    place, after = Place(at, workspace, namespace, key), rule_in(namespace, key, text)

    def enter(changes: Changes) -> None:
        if known is None:
            changes.compared(place, location, id_at(location), "")
        if instead:
            changes.drop(place)
        elif before is not None and binds_less(before, after, now):
            changes.lift(place, _json_of(before), "" if evidence is None else dump(evidence._asdict()))
        if after is not None and binds(after, now):
            changes.hold(place, text, checked=after.checked)

    journal.changing(enter, None)


def end_workspace(store: Any, workspace: str, evidence: UserEvidence | None) -> int:
    """A workspace was deleted: how many of its rules hold on from the journal, as nobody was seen to want them gone."""
    location = location_of(store)
    if not location or not holds_agents(store):
        return 0
    journal, at = journal_here(), store_key(location)
    if evidence is None:
        return len(journal.rules(at, workspace))
    journal.changing(lambda changes: changes.end(at, workspace, dump(evidence._asdict())), None)
    return 0


def propose(store: Any, workspace: str, before: ToolMemoryRule, after: ToolMemoryRule | None, speaker: str) -> str:
    """The code by which its user lets a rule bind less; "" where no more may wait, or nothing can be noted."""
    place = Place(store_key(location_of(store)), workspace, namespace_of(before.tool_name), rule_key(before.id))
    wanted = None if after is None else _json_of(after)
    return journal_here().changing(lambda changes: changes.propose(place, speaker, _json_of(before), wanted), "")


def _json_of(rule: ToolMemoryRule) -> str:
    return encode_value(rule.model_dump(mode="json"))


# ---------------------------------------------------------------- the journal as a hook finds the store


class StoreNow(NamedTuple):
    """A store at one moment."""

    path: str
    id: str
    stamp: str
    records: Sequence[RawRecord]  # of all rules


def reconcile(store: str, workspace: str, look: Callable[[], StoreNow], now: datetime) -> None:
    """The journal as its store is, whatever changed that by another way, or while nobody wrote the journal.

    `look`: asked while nobody else changes the journal.
    """

    def compare(changes: Changes) -> None:
        found = look()
        changes.take_over(store, found.id, found.path)
        changes.compared(Place(store, workspace), found.path, found.id, found.stamp)
        kept = {(each.namespace, each.key): each for each in changes.rules(store, workspace)}
        lost = {(each.kept.namespace, each.kept.key) for each in lost_rules(kept.values(), found.records, now)}
        held = {(each.namespace, each.key): each for each in found.records}
        for at in {**kept, **held}:
            _compare(changes, Place(store, workspace, *at), kept.get(at), held.get(at), now, lost=at in lost)

    journal_here().changing(compare, None)


def _compare(
    changes: Changes, place: Place, kept: KeptRule | None, held: RawRecord | None, now: datetime, *, lost: bool
) -> None:
    """One rule."""
    if kept is not None and lost:
        changes.lose(place, kept.text)
        return
    if kept is not None and held is not None and kept.text == held.text:
        changes.is_back(place)
        return
    before = None if kept is None else rule_in(*kept)
    after = None if held is None else rule_in(*held[:3])
    if before is not None and binds_less(before, after, now):
        changes.lift(place, kept.text if kept else "", evidence_in(held.text) if held else "")
    elif kept is not None and (after is None or not binds(after, now)):
        changes.drop(place)
    if after is not None and held is not None and binds(after, now):
        changes.hold(place, held.text, checked=after.checked)
