"""Repairs counted on from one summary to the next: a window of 30 calls holds few of them.

A recovery counts once, in the first summary whose window holds its success; failures in a row that end in one success
are one recovery, of the error of the last of them (`repairs.repaired`). What is kept is bounded: MAX_ERRORS kinds
of error, MAX_REPAIRS repairs for each, the ids of the newest KEPT_IDS calls of each repair. An error that is pushed out
begins anew when it comes back. Errors are known by their masked label: names that all messages of a window share
differ in a later one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from toolmem.guidance.counted.analysis import Analysis
from toolmem.guidance.counted.error_targets import NoAdvice
from toolmem.guidance.counted.repairs import BY_RESULT, Recovery, Repair, by_result
from toolmem.models import RepairCount, RepairHistory
from toolmem.readers import sql
from toolmem.readers.error_messages import mask

RULES = 3  # 1 counted calls that name no conversation; 2 parameters that were added along the way
MAX_ERRORS = 24
MAX_REPAIRS = 6
MAX_FORMS = 4
KEPT_IDS = 5


def repair_of(one: RepairCount) -> Repair:
    """What was counted."""
    return Repair(one.kind, one.path, one.before, one.after)


def after_error(history: RepairHistory, error: str) -> list[RepairCount]:
    """The repairs of one kind of error, most frequent first."""
    return _most_frequent(one for one in history.repairs if one.error == error)


def after_any(history: RepairHistory) -> list[RepairCount]:
    """The repairs of whatever error, most frequent first."""
    held: dict[Repair, RepairCount] = {}
    for one in history.repairs:
        there = held.setdefault(same(repair_of(one)), one)
        if there is not one:
            update = {"k": there.k + one.k, "call_ids": (*there.call_ids, *one.call_ids)}
            held[same(repair_of(one))] = there.model_copy(update=update)
    newest = {key: tuple(dict.fromkeys(one.call_ids))[-KEPT_IDS:] for key, one in held.items()}
    return _most_frequent(one.model_copy(update={"call_ids": newest[key]}) for key, one in held.items())


def _most_frequent(some: Iterable[RepairCount]) -> list[RepairCount]:
    return sorted(some, key=lambda one: (-one.k, repair_of(one)))


def same(repair: Repair) -> Repair:
    """A repair as it is counted: without what a statement, program or action was before, without shapes of values."""
    return Repair(repair.kind, repair.path) if repair.kind == "changed" else by_result(repair)


def counted(found: Analysis, before: RepairHistory | None) -> RepairHistory | None:
    """`before` with the recoveries of `found` that it does not hold yet; None where calls carry no seq."""
    seqs = [call.seq for call in found.calls if call.seq is not None]
    if not seqs or len(seqs) < len(found.calls):
        return None
    # The tool was deleted and began anew, or what was counted may have followed from another conversation.
    if before is None or max(seqs) < before.last_seq or before.rules < RULES:
        before = RepairHistory(rules=RULES, since=found.calls[0].create_time, calls=0, last_seq=0)
    group_of = {position: mask(group.label) for group in found.errors for position in group.positions}
    leave_out = {mask(group.label): NoAdvice(found, group) for group in found.errors}
    recovered = dict(before.recovered)
    held = {(one.error, same(repair_of(one))): one for one in before.repairs}
    for recovery in found.repaired:
        if (found.calls[recovery.success].seq or 0) <= before.last_seq:
            continue
        error = group_of[recovery.failure]
        recovered[error] = recovered.pop(error, 0) + 1
        for repair in sorted(recovery.repairs):
            if not leave_out[error].holds(repair, form=repair.path not in found.users_own):
                key = (error, same(repair))
                held[key] = _once_more(held.pop(key, None), error, repair, found, recovery)  # the newest at the end
    kept = _most(recovered)
    return RepairHistory(
        rules=RULES,
        since=before.since,
        calls=before.calls + sum(seq > before.last_seq for seq in seqs),
        last_seq=max(before.last_seq, *seqs),
        recovered={error: recovered[error] for error in recovered if error in kept},
        repairs=tuple(_bounded(held.values(), kept)),
    )


def _once_more(old: RepairCount | None, error: str, repair: Repair, found: Analysis, recovery: Recovery) -> RepairCount:
    if old is None:
        first = repair if repair.kind in BY_RESULT else same(repair)
        old = RepairCount(error=error, **first._asdict(), k=0)
    forms = Counter(old.forms)
    statement = found.seen[recovery.success].texts.get(repair.path)
    if repair.kind == "statement" and isinstance(statement, sql.Statement) and statement.form:
        forms[statement.form] += 1
    return old.model_copy(
        update={
            "k": old.k + 1,
            "forms": dict(forms.most_common(MAX_FORMS)),
            "call_ids": (*old.call_ids, found.ids[recovery.failure])[-KEPT_IDS:],
        }
    )


def _most(recovered: Mapping[str, int]) -> set[str]:
    """The errors that are kept: the most frequent; of equal ones those that came last."""
    order = {error: place for place, error in enumerate(recovered)}
    return set(sorted(recovered, key=lambda error: (-recovered[error], -order[error]))[:MAX_ERRORS])


def _bounded(counts: Iterable[RepairCount], kept: set[str]) -> list[RepairCount]:
    """The most frequent of each error that is kept, the newest where counts are equal; these stand last."""
    of_error: dict[str, list[RepairCount]] = {}
    for one in counts:
        if one.error in kept:
            of_error.setdefault(one.error, []).append(one)
    return [one for some in of_error.values() for one in sorted(some, key=lambda one: one.k)[-MAX_REPAIRS:]]
