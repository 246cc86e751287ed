"""Claims about repairs: after which error what came next, when it worked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from toolmem.guidance.counted.analysis import Analysis
from toolmem.guidance.counted.claims import claim
from toolmem.guidance.counted.error_groups import ErrorGroup
from toolmem.guidance.counted.error_targets import NoAdvice, targets
from toolmem.guidance.counted.render import MOSTLY
from toolmem.guidance.counted.repair_history import after_any, after_error, repair_of, same
from toolmem.guidance.counted.repairs import Recovery, Repair, commonest_change, commonest_form, tally
from toolmem.guidance.counted.user_values import named_as_own, same_in_another_form
from toolmem.guidance.counted.values import by_frequency
from toolmem.models import Claim, RepairCount, RepairHistory, Subject
from toolmem.readers.error_messages import MASK, mask
from toolmem.readers.proportions import wilson_interval

MAX_GROUPS = 8  # error groups that repairs are named for
PER_GROUP = 3  # repairs named for an error that only the history knows
MAX_TOGETHER = 3  # repairs told in one sentence
MAX_ERRORS_SINCE = 12  # errors that repairs are named for over the whole history
MAX_SHOWN = 40  # characters of a value that is shown before and after a change
CONTEXT = 8  # characters that are left on either side of what differs in two long texts
ANY_NAMED = 2  # repairs named for any failure
ANY_SHARE, ANY_SHARE_OF_ONE = 0.2, 0.5  # of all recoveries: of several kinds of error, and where there is one kind
_TRADING = frozenset({"changed", "dropped"})  # kinds of repair that give up a value
LEAST_SHARE = 0.12  # of the group's recoveries that a repair must hold to be named


Told = tuple[Repair, str, str]  # a repair, how most of its statements were written, and an example of the change


def repairs(found: Analysis) -> Iterator[Claim]:
    """What repaired failures, by kind of error and after any. A repair that both would tell is told in one line."""
    general = list(_after_any(found))
    told = {frozenset(one.call_ids) for one in general} if len(found.errors) == 1 else set()
    yield from (one for one in _by_error(found) if frozenset(one.call_ids) not in told)
    yield from general


def _by_error(found: Analysis) -> Iterator[Claim]:
    """What repaired each kind of failure. Evidence: the failed calls that were recovered in this way.

    A run of failures that ends in one success counts once, with its last failure (`Analysis.repaired`).
    A repair is named where it was seen at least twice and in LEAST_SHARE of the group's recoveries; where a group
    has a single recovery, that one is told as what it is. That a parameter changed which changes with nearly every
    call is left out, unless the error is about it. No cause is claimed: the counts say what came next.
    """
    by_failure = {one.failure: one for one in found.repaired}
    for group in found.errors[:MAX_GROUPS]:
        recovered = [by_failure[i] for i in group.positions if i in by_failure]
        yield from _of_group(found, group, recovered)


def _after_any(found: Analysis) -> Iterator[Claim]:
    """What repaired failures whatever they said, for errors not met so far. Evidence: the recovered failures.

    The ANY_NAMED most frequent repairs: of several kinds of error and in ANY_SHARE of all recoveries; or, where no
    other kind of error was met, in ANY_SHARE_OF_ONE of them: then the sentence names the error. One that mostly came
    along with another says nothing new.
    """
    group_of = {position: number for number, group in enumerate(found.errors) for position in group.positions}
    alone = len(found.errors) == 1  # calls failed with a single kind of error
    n = len(found.repaired)
    leave_out = [NoAdvice(found, group) for group in found.errors]
    named = 0
    told: set[int] = set()
    for together, some in _joined(found.repaired):
        kinds = len({group_of[one.failure] for one in some})
        failures = [one.failure for one in some]
        if named == ANY_NAMED or not _of_any(len(some), n, kinds, alone) or len(set(failures) - told) < LEAST_SHARE * n:
            continue
        concerned = {group_of[i] for i in failures}
        telling = [one for one in together if not any(leave_out[number].holds(one) for number in concerned)]
        # Errors not met so far do not name the parameter of a value that is the user's own.
        telling = [one for one in telling if alone or not (one.kind in _TRADING and one.path in found.users_own)]
        if done := _told(found, telling, some, examples=alone, plain=True):
            named += 1
            told.update(failures)
            label = found.errors[group_of[failures[0]]].label if alone else None
            yield _repaired(found, done, label, len(some), n, failures, widely=alone)


def _repaired(
    found: Analysis,
    told: Sequence[Told],
    label: str | None,
    k: int,
    n: int,
    failures: Sequence[int] = (),
    earlier: Sequence[str] = (),
    **detail: object,
) -> Claim:
    """`label`: of the error; None: of whatever error. `earlier`: ids of failures that have left the window."""
    repaired = tuple(repair for repair, _, _ in told)
    form = "repair_any" if label is None else "repair"
    subject = Subject(form=form, error=mask(label or ""), repairs=repaired)
    shown = {"label": label, "forms": [form for _, form, _ in told], "examples": [example for *_, example in told]}
    kind = "repair_since" if "since" in detail else "repair"
    return claim(found, kind, subject, k, n, failures, detail={**shown, **detail}, earlier=earlier)


def _of_any(k: int, n: int, kinds: int, alone: bool = False) -> bool:
    """Whether k of n recoveries say something of errors not met so far; `alone`: a single kind was met."""
    return k >= ANY_SHARE * n if kinds > 1 else alone and k >= ANY_SHARE_OF_ONE * n


def since(found: Analysis, history: RepairHistory) -> Iterator[Claim]:
    """`repairs` over the whole history, of which the window is the end.

    Evidence: the newest of the failed calls; some of them may have left the store.
    """
    errors = sorted(history.recovered, key=lambda error: (-history.recovered[error], error))
    day = history.since.date().isoformat()
    alone = {*errors} >= {mask(group.label) for group in found.errors} and len(errors) == 1
    named = 0
    for error in errors[:MAX_ERRORS_SINCE]:
        n = history.recovered[error]
        told = after_error(history, error)[:PER_GROUP]
        for first, *more in _alike([one for one in told if n == 1 or (one.k >= 2 and one.k >= LEAST_SHARE * n)]):
            done = [
                (repair_of(one), _form_of(repair_of(one), one.forms, one.k), "")
                for one in (first, *more)[:MAX_TOGETHER]
            ]
            widely = alone and named < ANY_NAMED and _of_any(first.k, n, kinds=1, alone=True)
            named += widely
            yield _repaired(found, done, error, first.k, n, earlier=first.call_ids, widely=widely, since=day)
    if alone:
        return
    n = sum(history.recovered.values())
    any_error = [
        one
        for one in after_any(history)
        if not (one.kind in _TRADING and (one.path in found.users_own or named_as_own(one.path)))
        and _of_any(one.k, n, len({other.error for other in history.repairs if _alike_repairs(one, other)}))
    ]
    for one in any_error[:ANY_NAMED]:
        yield _repaired(found, [(repair_of(one), "", "")], None, one.k, n, earlier=one.call_ids, since=day)


def _alike_repairs(one: RepairCount, other: RepairCount) -> bool:
    return same(repair_of(one)) == same(repair_of(other))


def _alike(told: Sequence[RepairCount]) -> list[list[RepairCount]]:
    """Repairs of the same recoveries, as far as counts and ids tell, are told together."""
    joined: dict[tuple[int, tuple[str, ...]], list[RepairCount]] = {}
    for one in told:
        joined.setdefault((one.k, one.call_ids), []).append(one)
    return list(joined.values())


def pointed_at(found: Analysis, history: RepairHistory | None = None) -> Iterator[Claim]:
    """Which parameter an error names, where no repair was seen. Evidence: the failures of which that holds."""
    for group in found.errors[:MAX_GROUPS]:
        if _repaired_at(found, group, history):
            continue  # told already, or it contradicts that the error is about a parameter
        for target in targets(found, group):
            if any(one.path == target.path and {*target.positions} <= {*one.positions} for one in found.refusals):
                continue  # which of its values are refused is told
            subject = Subject(form=f"target_{target.how}", path=target.path, error=mask(group.label))
            k, n = len(target.positions), len(group.positions)
            yield claim(found, "target", subject, k, n, target.positions, detail={"label": group.label})


def _repaired_at(found: Analysis, group: ErrorGroup, history: RepairHistory | None) -> set[str]:
    """The parameters that repairs of this kind of error are told of: seen twice, or in its only recovery."""
    failures = set(group.positions)
    recovered = [one for one in found.repaired if one.failure in failures]
    leave_out = NoAdvice(found, group)
    counts = [(repair, len(some)) for repair, some in tally(recovered) if not leave_out.holds(repair)]
    n = len(recovered)
    if history is not None:
        error = mask(group.label)
        counts = [(repair_of(one), one.k) for one in after_error(history, error)]
        n = history.recovered.get(error, 0)
    return {repair.path.partition(".")[0] for repair, k in counts if k >= 2 or n == 1}


def unrecovered(found: Analysis) -> Iterator[Claim]:
    """Errors after which the tool did not work again. Evidence: failures followed by failures only."""
    for group in found.errors[:MAX_GROUPS]:
        followed = [i for i in group.positions if i in found.followed]
        lost = [i for i in followed if i not in found.worked_after]
        k, n = len(lost), len(followed)
        if k >= 4 and k >= 0.9 * n and wilson_interval(k, n)[0] > 0.5:  # often enough to be more than bad luck
            subject = Subject(form="unrecovered", error=mask(group.label))
            yield claim(found, "unrecovered", subject, k, n, lost, detail={"label": group.label})


def _of_group(found: Analysis, group: ErrorGroup, recovered: Sequence[Recovery]) -> Iterator[Claim]:
    n = len(recovered)
    told: set[int] = set()
    leave_out = NoAdvice(found, group)
    for together, some in _joined(recovered):
        k, failures = len(some), [one.failure for one in some]
        once = n == 1
        # A change that only came along with those told already says nothing new.
        new = len(set(failures) - told)
        if len(told) == n or (not once and (k < 2 or k < LEAST_SHARE * n)):
            return
        if not once and new < max(2, LEAST_SHARE * n):
            continue
        if done := _told(found, [one for one in together if not leave_out.holds(one)], some):
            told.update(failures)
            yield _repaired(found, done, group.label, k, n, failures)


def _told(
    found: Analysis,
    together: Sequence[Repair],
    some: Sequence[Recovery],
    examples: bool = True,
    plain: bool = False,
) -> list[Told]:
    """What is told of them; unless `plain`, nothing where all to be said is that the only parameter was changed."""
    told = []
    for repair in together[:MAX_TOGETHER]:
        shown = _shown(found, repair, some) if examples else ""
        if repair.kind == "changed" and not (shown or repair.after or plain) and len(found.names) == 1:
            continue
        form, count = commonest_form(some, found.seen, repair.path)
        told.append((repair, _form_of(repair, {form: count}, len(some)), shown))
    return told


def _shown(found: Analysis, repair: Repair, some: Sequence[Recovery]) -> str:
    """An example of a changed value, from the change that was made most often."""
    if repair.kind != "changed" or repair.path in found.text_kinds:
        return ""
    change = commonest_change(some, found.seen, repair.path)
    if change is None or (repair.path in found.users_own and not same_in_another_form(*change)):
        return ""  # what another user's value was is no example
    return spelled(*change)


def _joined(recovered: Sequence[Recovery]) -> list[tuple[list[Repair], list[Recovery]]]:
    """Repairs with the recoveries that hold them; repairs of the very same recoveries are told together."""
    joined: dict[tuple[int, ...], tuple[list[Repair], list[Recovery]]] = {}
    for repair, some in tally(recovered):
        key = tuple(one.failure for one in some)
        joined.setdefault(key, ([], some))[0].append(repair)
    return list(joined.values())


def _form_of(repair: Repair, forms: Mapping[str, int], n: int) -> str:
    """How the statement that repaired was written: SHOW TABLES, or "mostly SHOW TABLES" where most of the n were."""
    if repair.kind != "statement" or not repair.after or not forms:
        return ""
    form = by_frequency(forms)[0]
    if form in {"", repair.after} or 2 * forms[form] <= n:
        return ""
    return form if forms[form] == n else f"{MOSTLY}{form}"


def spelled(before: Any, after: Any) -> str:
    """`'$' → 'USD'`: a change in a few characters, "" where it does not fit. Of long texts what differs is shown."""
    if isinstance(before, str) and isinstance(after, str):
        if max(len(before), len(after)) > MAX_SHOWN:
            before, after = _differing(before, after)
        sides = [repr(" ".join(side.split())) for side in (before, after)]
    else:
        sides = [json.dumps(side, ensure_ascii=False, default=str) for side in (before, after)]
    if sides[0] == sides[1] or max(map(len, sides)) > MAX_SHOWN + 2:
        return ""
    return f"{sides[0]} → {sides[1]}"


def _differing(a: str, b: str) -> tuple[str, str]:
    """Two long texts without their common beginning and end, but for a few characters of each."""
    start = _shared_length(a, b)
    end = min(_shared_length(a[::-1], b[::-1]), len(a) - start, len(b) - start)
    start, end = max(0, start - CONTEXT), max(0, end - CONTEXT)

    def cut(text: str) -> str:
        return (MASK if start else "") + text[start : len(text) - end] + (MASK if end else "")

    return cut(a), cut(b)


def _shared_length(a: str, b: str) -> int:
    """Characters with which both texts begin."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
