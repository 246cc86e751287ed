"""What the journal says of rules that hold no longer, or less: what is true of it still, what was lifted at once."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from toolmem.light_models import ToolMemoryRule
from toolmem.rules.kept_rules import rule_in
from toolmem.rules.loosening import binds_less
from toolmem.rules.replaced_demands import are_of_one_demand
from toolmem.store.journal_changes import JournalEntry, KeptRule, Place, journal_here

_OF_RULES = ("lifted", "let go", "gone")


def rule_of(entry: JournalEntry) -> ToolMemoryRule | None:
    """The rule as it held before; None where the entry is of a store."""
    return rule_in(entry.place.namespace, entry.place.key, entry.text)


def still_true(entries: Iterable[JournalEntry], now: datetime) -> list[JournalEntry]:
    """Without those on rules that hold again as they did, and with the newest alone of several on one rule."""
    told = list(entries)
    newest = {each.place: each for each in told if each.what in _OF_RULES}
    held = _HeldByJournal()
    return [
        each for each in told if each.what not in _OF_RULES or (newest[each.place] is each and held.is_true(each, now))
    ]


def lifted_at_once(entry: JournalEntry, now: datetime) -> list[JournalEntry]:
    """This entry, then those on the other rules of its demand: it is kept under each class of tools that it is about.

    They were lifted by the same words, and hold no longer.
    """
    rule = rule_of(entry)
    if rule is None:
        return [entry]
    newest = {each.place: each for each in reversed(journal_here().lifted(entry.place.store))}
    others = [each for place, each in newest.items() if place != entry.place]
    return [entry, *(each for each in still_true(others, now) if is_of_one_lift(entry, rule, each, rule_of(each)))]


def is_of_one_lift(
    entry: JournalEntry, rule: ToolMemoryRule, other: JournalEntry, of_other: ToolMemoryRule | None
) -> bool:
    """Did the same befall another rule of the same demand, for the same words?"""
    same = (entry.what, entry.evidence, entry.place[:2]) == (other.what, other.evidence, other.place[:2])
    return same and of_other is not None and are_of_one_demand(of_other, rule)


class _HeldByJournal:
    """What holds now of each store, by the journal."""

    def __init__(self) -> None:
        self._rules: dict[tuple[str, str], dict[Place, KeptRule]] = {}
        self._missing: dict[str, set[Place]] = {}

    def is_true(self, entry: JournalEntry, now: datetime) -> bool:
        place = entry.place
        if entry.what == "gone":
            if place.store not in self._missing:
                self._missing[place.store] = set(journal_here().missing(place.store))
            return place in self._missing[place.store]
        at = place[:2]
        if at not in self._rules:
            held = journal_here().rules(*at)
            self._rules[at] = {Place(*at, each.namespace, each.key): each for each in held}
        there, before = self._rules[at].get(place), rule_of(entry)
        return there is None or before is None or binds_less(before, rule_in(*there), now)
