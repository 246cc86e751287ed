"""Repairs counted on from one summary to the next: a window of 30 calls holds few of them.

A recovery counts once, in the first summary whose window holds its success; failures in a row that end in one success
are one recovery, of the error of the last of them (`repairs.repaired`). What is kept is bounded: MAX_ERRORS kinds
of error, MAX_REPAIRS repairs for each, the ids of the newest KEPT_IDS calls of each repair. An error that is pushed out
begins anew when it comes back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from toolmem.guidance.counted.analysis import Analysis
from toolmem.guidance.counted.error_targets import NoAdvice
from toolmem.guidance.counted.repairs import Recovery, Repair
from toolmem.models import RepairCount, RepairHistory
from toolmem.readers import sql
from toolmem.readers.error_messages import mask

RULES = 3  # 1 counted calls that name no conversation; 2 parameters that were added along the way
MAX_ERRORS = 24
MAX_REPAIRS = 6
MAX_FORMS = 4
KEPT_IDS = 5
_BY_RESULT = frozenset({"statement", "program", "action"})  # what it was changed into counts, whatever it was before


@dataclass(frozen=True, slots=True)
class Total:
    """One repair over the whole history. `call_ids`: of the newest failures that it repaired."""

    repair: Repair
    k: int
    call_ids: tuple[str, ...]
    forms: Mapping[str, int]  # of the statements that repaired: SHOW TABLES


class Totals:
    """A history, looked up by error."""

    def __init__(self, history: RepairHistory) -> None:
        self.since = history.since.date().isoformat()
        self.recovered: Mapping[str, int] = history.recovered
        self._by_error: dict[str, list[Total]] = {}
        for one in history.repairs:
            repair = Repair(one.kind, one.path, one.before, one.after)
            self._by_error.setdefault(one.error, []).append(Total(repair, one.k, one.call_ids, one.forms))

    def of(self, error: str) -> list[Total]:
        """The repairs of one kind of error, most frequent first."""
        return sorted(self._by_error.get(error, ()), key=lambda one: (-one.k, one.repair))

    def of_any(self) -> list[Total]:
        """The repairs of whatever error, most frequent first."""
        k: dict[Repair, int] = {}
        ids: dict[Repair, tuple[str, ...]] = {}
        named: dict[Repair, Repair] = {}
        for total in (one for some in self._by_error.values() for one in some):
            key = same(total.repair)
            named.setdefault(key, total.repair)
            k[key] = k.get(key, 0) + total.k
            ids[key] = (*ids.get(key, ()), *total.call_ids)
        made = [Total(named[key], k[key], tuple(dict.fromkeys(ids[key]))[-KEPT_IDS:], {}) for key in k]
        return sorted(made, key=lambda one: (-one.k, one.repair))


def error_key(label: str) -> str:
    """By what an error is known from one window to the next: names that all messages of a window share differ later."""
    return mask(label)


def same(repair: Repair) -> Repair:
    """A repair as it is counted: without what a statement, program or action was before, without shapes of values."""
    if repair.kind in _BY_RESULT:
        return repair._replace(before="")
    return Repair(repair.kind, repair.path) if repair.kind == "changed" else repair


def counted(found: Analysis, before: RepairHistory | None) -> RepairHistory | None:
    """`before` with the recoveries of `found` that it does not hold yet; None where calls carry no seq."""
    seqs = [call.seq for call in found.calls if call.seq is not None]
    if not seqs or len(seqs) < len(found.calls):
        return None
    last = before.last_seq if before else 0
    # The tool was deleted and began anew, or what was counted may have followed from another conversation.
    if max(seqs) < last or (before is not None and before.rules < RULES):
        before, last = None, 0
    group_of = {position: error_key(group.label) for group in found.errors for position in group.positions}
    leave_out = {error_key(group.label): NoAdvice(found, group) for group in found.errors}
    recovered = dict(before.recovered) if before else {}
    held = {(one.error, same(_repair(one))): one for one in before.repairs} if before else {}
    for recovery in found.repaired:
        if (found.calls[recovery.success].seq or 0) <= last:
            continue
        error = group_of[recovery.failure]
        recovered[error] = recovered.pop(error, 0) + 1
        for repair in sorted(recovery.repairs):
            if leave_out[error].holds(repair, form=repair.path not in found.users_own):
                continue
            key = (error, same(repair))
            old = held.pop(key, None)  # put in anew at the end: the newest are there
            known = (*(old.call_ids if old else ()), found.ids[recovery.failure])
            shown = _repair(old) if old else (repair if repair.kind in _BY_RESULT else same(repair))
            held[key] = RepairCount(
                error=error,
                **shown._asdict(),
                k=(old.k if old else 0) + 1,
                forms=_forms(old.forms if old else {}, found, recovery, repair),
                call_ids=known[-KEPT_IDS:],
            )
    kept = _most(recovered)
    return RepairHistory(
        rules=RULES,
        since=before.since if before else found.calls[0].create_time,
        calls=(before.calls if before else 0) + sum(seq > last for seq in seqs),
        last_seq=max(last, *seqs),
        recovered={error: recovered[error] for error in recovered if error in kept},
        repairs=tuple(_bounded(held.values(), kept)),
    )


def _most(recovered: Mapping[str, int]) -> set[str]:
    """The errors that are kept: the most frequent; of equal ones those that came last."""
    order = {error: place for place, error in enumerate(recovered)}
    return set(sorted(recovered, key=lambda error: (-recovered[error], -order[error]))[:MAX_ERRORS])


def _bounded(counts: Iterable[RepairCount], kept: set[str]) -> list[RepairCount]:
    of_error: dict[str, list[RepairCount]] = {}
    for one in counts:
        if one.error in kept:
            of_error.setdefault(one.error, []).append(one)
    for some in of_error.values():
        some.reverse()  # the newest first, where counts are equal
        some.sort(key=lambda one: -one.k)
        del some[MAX_REPAIRS:]
        some.reverse()
    return [one for some in of_error.values() for one in some]


def _repair(one: RepairCount) -> Repair:
    return Repair(one.kind, one.path, one.before, one.after)


def _forms(before: Mapping[str, int], found: Analysis, recovery: Recovery, repair: Repair) -> dict[str, int]:
    statement = found.seen[recovery.success].texts.get(repair.path) if repair.kind == "statement" else None
    form = statement.form if isinstance(statement, sql.Statement) else ""
    counts = Counter(before)
    counts.update([form] if form else [])
    return dict(counts.most_common(MAX_FORMS))
