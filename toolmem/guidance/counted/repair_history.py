"""Failures and repairs counted on from one summary to the next: a window of 30 calls holds few of them.

A failure counts once, in the first summary whose window holds it; a recovery in the first one that holds its success,
and failures in a row with the same error that end in one success are one recovery. What is kept is bounded: MAX_ERRORS
kinds of error, MAX_REPAIRS repairs for each, the ids of the newest KEPT_IDS calls. Of a tool that is many programs
(`parts.part_of`) each has errors of its own, and none pushes out another's. An error that is pushed out begins
anew when it comes back. Errors are known by their masked message, and shown as they were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, pairwise

from toolmem.guard.effects import may_write
from toolmem.guidance.counted.analysis import Analysis
from toolmem.guidance.counted.changes import change_between, concerned
from toolmem.guidance.counted.conditions import Observation
from toolmem.guidance.counted.repairs import BY_RESULT, Recovery, Repair, by_result, differences
from toolmem.guidance.counted.shown_values import message_of, output_of
from toolmem.guidance.counted.values import at, is_written_in, leaves
from toolmem.guidance.in_between import called_between
from toolmem.guidance.outcomes import passing
from toolmem.guidance.parts import part_of
from toolmem.models import FailureCount, RepairCount, RepairHistory
from toolmem.readers import sql
from toolmem.readers.error_messages import MASK, mask

RULES = 4  # 1 counted calls that name no conversation; 2 parameters that were added along the way; 3 had no failures
MAX_ERRORS = 40
MAX_OF_PARTS = 200  # kinds of error of a tool that is many programs, MAX_ERRORS of each of them
MAX_REPAIRS = 16
MAX_FORMS = 4
MAX_GIVEN, MAX_ECHO = 40, 60  # values of a call that its error may repeat, and characters of one
KEPT_IDS = 5
# Classes of errors after which the call may have been done all the same.
LEFT_OPEN = frozenset({"timeout", "no_output", "server_error", "connection_error"})

Key = tuple[str, bool, str]  # an error, masked; whether it is an answer that was worth nothing; the part of the tool


def repair_of(one: RepairCount) -> Repair:
    """What was counted."""
    return Repair(one.kind, one.path, one.before, one.after)


def after_error(history: RepairHistory, error: str, part: str | None = None) -> list[RepairCount]:
    """The repairs of one kind of error, most frequent first. `part`: of the tool, None for all of it."""
    found: dict[Repair, RepairCount] = {}
    for one in history.repairs:
        if one.error == error and part in (None, one.part):
            old = found.get(repair_of(one))
            found[repair_of(one)] = one.model_copy(update={"k": one.k + old.k}) if old is not None else one
    return sorted(found.values(), key=lambda one: (-one.k, repair_of(one)))


def same(repair: Repair) -> Repair:
    """A repair as it is counted: without what a statement, program or action was before, without shapes of values."""
    return Repair(repair.kind, repair.path) if repair.kind == "changed" else by_result(repair)


def counted(found: Analysis, before: RepairHistory | None) -> RepairHistory:
    """`before` with the failures and recoveries of `found` that it does not hold yet.

    Calls without a seq are counted by their place; what is made of such calls is no history to go on from. Raises
    ValueError where there are no calls.
    """
    seqs = [place if call.seq is None else call.seq for place, call in enumerate(found.calls, 1)]
    newest = max(seqs)
    # The tool was deleted and began anew, or other rules counted.
    if before is None or newest < before.last_seq or before.rules < RULES:
        before = RepairHistory(rules=RULES, since=found.calls[0].create_time, calls=0, last_seq=0)
    made = _Counting(found, seqs, before)
    made.failures()
    made.empty_answers()
    made.recoveries()
    return made.history(newest)


class _Counting:
    """One summary's count: what was there before, and the calls that are new since then."""

    def __init__(self, found: Analysis, seqs: Sequence[int], before: RepairHistory) -> None:
        self._found, self._seqs, self._before = found, seqs, before
        self._held: dict[Key, FailureCount] = {(one.error, one.silent, one.part): one for one in before.failures}
        self._recovered = dict(before.recovered)
        self._repairs = {(one.error, one.part, same(repair_of(one))): one for one in before.repairs}
        self._next = {a: b for group in found.told for a, b in pairwise(group)}
        self._errors = {i: error_of(line, found.seen[i]) for i, line in found.messages.items()}

    def failures(self) -> None:
        hopeless = self._hopeless()
        for i, error in self._errors.items():
            if self._is_new(i):
                key = self._key(error, i)
                self._once_more(key, i, message_of(self._found.calls[i]), tried=i in hopeless)
                if not passing(self._found.calls[i]):
                    self._got_past(key, i)

    def empty_answers(self) -> None:
        for i, useful in enumerate(self._found.useful):
            if useful is False and self._is_new(i) and (shown := output_of(self._found.calls[i])):
                self._once_more(self._key(mask(shown), i, silent=True), i, shown)
        for one in self._found.answered:
            shown = output_of(self._found.calls[one.failure])
            if shown and self._is_new(one.success):
                self._example(self._key(mask(shown), one.failure, silent=True), one.failure, one.success)

    def recoveries(self) -> None:
        last = {(one.success, self._errors[one.failure]): one for one in self._found.recoveries}
        for (success, error), one in sorted(last.items(), key=lambda item: (self._seqs[item[0][0]], item[1].failure)):
            again = any(repair.kind == "repeated" for repair in one.repairs)
            failed = self._key(error, one.failure)
            if again and self._may_be_done(one.failure):  # it worked in the end: what may be doubled is not told
                if (old := self._held.get(failed)) is not None:
                    self._held[failed] = old.model_copy(update={"tried": False})
            elif self._is_new(success):
                self._recovered[error] = self._recovered.pop(error, 0) + 1
                step = self._step(one)
                telling = {repair for repair in step.repairs if not self._always_changes(repair, one.failure)}
                if failed[2] and (old := self._held.get(failed)) is not None:
                    self._held[failed] = old.model_copy(update={"recovered": old.recovered + 1})
                for repair in sorted(telling or step.repairs):
                    key = (error, failed[2], same(repair))
                    self._repairs[key] = self._repaired(self._repairs.pop(key, None), failed, repair, step)
                self._example(failed, one.failure, step.success)

    def history(self, newest: int) -> RepairHistory:
        before = self._before
        kept = _most({key: one.k for key, one in self._held.items()})
        errors = {(error, part) for error, silent, part in kept if not silent}
        names = {error for error, _ in errors}
        return RepairHistory(
            rules=RULES,
            since=before.since,
            calls=before.calls + sum(seq > before.last_seq for seq in self._seqs),
            last_seq=max(before.last_seq, newest),
            recovered={error: k for error, k in self._recovered.items() if error in names},
            repairs=tuple(_bounded(self._repairs.values(), errors)),
            failures=tuple(one for key, one in self._held.items() if key in kept),
            proofs=before.proofs,
        )

    def _key(self, error: str, i: int, *, silent: bool = False) -> Key:
        call = self._found.calls[i]
        return error, silent, part_of(call.tool_name, call.input)

    def _is_new(self, position: int) -> bool:
        return self._seqs[position] > self._before.last_seq

    def _once_more(self, key: Key, i: int, message: str, *, tried: bool = False) -> None:
        """Count it; the newest stand at the end, with the words of the newest."""
        old = self._held.pop(key, None)
        sent = old.sent if old is not None and old.repaired else concerned(self._found.seen[i], message)
        ids = old.call_ids if old is not None else ()
        update = {
            "k": 1 + (old.k if old is not None else 0),
            "message": old.message if old is not None and old.repaired else message,
            "sent": sent,
            "tried": tried or (old is not None and old.tried),
            "call_ids": (*ids, self._found.ids[i])[-KEPT_IDS:],
        }
        self._held[key] = (old or FailureCount(error=key[0], silent=key[1], part=key[2], k=0)).model_copy(update=update)

    def _example(self, key: Key, failure: int, success: int, *, past: bool = False) -> None:
        """Show this change where none is shown yet, or none so small; of equal ones the newest."""
        old = self._held.get(key)
        if old is None:
            return
        call = self._found.calls[failure]
        message = output_of(call) if key[1] else message_of(call)
        change = change_between(self._found, failure, success, message)
        between = () if change is None or change.size else called_between(self._found.calls[success])
        if change is None or (past and not change.size and (not between or self._may_be_done(failure))):
            return
        if not old.repaired or (not past and (old.past or change.size <= old.size)):
            if old.repaired and not old.past and not old.size:  # what came between every time
                between = tuple(name for name in old.between if name in between)
            update = {**change._asdict(), "message": message, "repaired": True, "past": past, "between": between}
            self._held[key] = old.model_copy(update=update)

    def _got_past(self, key: Key, i: int) -> None:
        """The next call failed with another error: what was changed took it further."""
        after = self._next.get(i)
        further = after is not None and self._errors.get(after, key[0]) != key[0]
        if after is not None and further and not self._held[key].repaired:
            self._example(key, i, after, past=True)

    def _step(self, one: Recovery) -> Recovery:
        """Up to the next call that failed with another error, where what it changed stayed until the success."""
        after = self._next.get(one.failure)
        if after is None or after == one.success or after not in self._errors:
            return one
        seen = self._found.seen
        made = frozenset(differences(seen[one.failure], seen[after]))
        paths = {repair.path for repair in made}
        lasting = all(at(seen[after].params, path) == at(seen[one.success].params, path) for path in paths if path)
        if self._errors[after] == self._errors[one.failure] or not lasting or not any(paths):
            return one
        return Recovery(one.failure, after, made)

    def _always_changes(self, repair: Repair, failure: int) -> bool:
        """Whether it changes a parameter that changes with nearly every call, and the error is not about it."""
        restless = repair.kind == "changed" and repair.path in self._found.restless
        return restless and repair.path not in self._found.messages[failure]

    def _may_be_done(self, i: int) -> bool:
        """A call of a tool that may write, with an error that leaves open whether it was done."""
        call = self._found.calls[i]
        return call.error_class in LEFT_OPEN and may_write(call.tool_name, call.input)

    def _hopeless(self) -> set[int]:
        """Failures that were followed by other calls of the tool, of which none worked."""
        hopeless: set[int] = set()
        for group in self._found.told:
            for place, i in enumerate(reversed(group)):
                if self._found.outcomes[i] is not False:
                    break
                if place:
                    hopeless.add(i)
        return hopeless

    def _repaired(self, old: RepairCount | None, failed: Key, repair: Repair, made: Recovery) -> RepairCount:
        if old is None:
            first = repair if repair.kind in BY_RESULT else same(repair)
            old = RepairCount(error=failed[0], part=failed[2], **first._asdict(), k=0)
        forms = Counter(old.forms)
        statement = self._found.seen[made.success].texts.get(repair.path)
        if repair.kind == "statement" and isinstance(statement, sql.Statement) and statement.form:
            forms[statement.form] += 1
        ids = (*old.call_ids, self._found.ids[made.failure])[-KEPT_IDS:]
        return old.model_copy(update={"k": old.k + 1, "forms": dict(forms.most_common(MAX_FORMS)), "call_ids": ids})


def error_of(line: str, seen: Observation) -> str:
    """The message, masked, without what the call itself was given."""
    given = {str(value) for _, value in islice(leaves(seen.params), MAX_GIVEN) if isinstance(value, str | int | float)}
    for text in sorted(given, key=len, reverse=True):
        if 1 < len(text) <= MAX_ECHO and text in line and is_written_in(line, text):
            line = line.replace(text, MASK)
    return mask(line)


def _most(counts: Mapping[Key, int]) -> set[Key]:
    """The errors that are kept: of each part the most frequent, of equal ones those that came last; then of all."""
    order = [*counts]
    order.reverse()
    order.sort(key=lambda key: -counts[key])
    of_part: Counter[str] = Counter()
    rank: dict[Key, int] = {}
    for key in order:
        rank[key] = of_part[key[2]]
        of_part[key[2]] += 1
    order = sorted((key for key in order if rank[key] < MAX_ERRORS), key=rank.__getitem__)
    return set(order[: MAX_OF_PARTS if len(of_part) > 1 else MAX_ERRORS])


def _bounded(counts: Iterable[RepairCount], kept: set[tuple[str, str]]) -> list[RepairCount]:
    """The most frequent of each error that is kept, the newest where counts are equal; these stand last."""
    of_error: dict[tuple[str, str], list[RepairCount]] = {}
    for one in counts:
        if (one.error, one.part) in kept:
            of_error.setdefault((one.error, one.part), []).append(one)
    each = MAX_REPAIRS if len(of_error) <= MAX_ERRORS else MAX_REPAIRS * MAX_ERRORS // len(of_error)
    return [one for some in of_error.values() for one in sorted(some, key=lambda one: one.k)[-each:]]
