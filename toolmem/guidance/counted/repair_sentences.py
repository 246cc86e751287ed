"""Sentences about repairs: after which error what came next, when it worked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from toolmem.guidance.counted.analysis import Analysis
from toolmem.guidance.counted.error_messages import ErrorGroup
from toolmem.guidance.counted.error_targets import NoAdvice, targets
from toolmem.guidance.counted.repair_history import Total, Totals, error_key, same
from toolmem.guidance.counted.repairs import Recovery, Repair, commonest_change, commonest_form, tally
from toolmem.guidance.counted.sentences import Sentence
from toolmem.guidance.counted.user_values import named_as_own, same_in_another_form
from toolmem.guidance.counted.wording import MAX_MENTION, Wording, spelled
from toolmem.guidance.counted.worth import of_repair, worth
from toolmem.guidance.statistics import wilson_interval

MAX_GROUPS = 8  # error groups that repairs are named for
PER_GROUP = 3  # repairs named for an error that only the history knows
MAX_TOGETHER = 3  # repairs told in one sentence
MAX_ERRORS_SINCE = 12  # errors that repairs are named for over the whole history
ANY_NAMED = 2  # repairs named for any failure
ANY_SHARE, ANY_SHARE_OF_ONE = 0.2, 0.5  # of all recoveries: of several kinds of error, and where there is one kind
_TRADING = frozenset({"changed", "dropped"})  # kinds of repair that give up a value
LEAST_SHARE = 0.12  # of the group's recoveries that a repair must hold to be named


def repairs(found: Analysis, say: Wording) -> Iterator[Sentence]:
    """What repaired failures, by kind of error and after any. A repair that both would tell is told in one line."""
    general = list(_after_any(found, say))
    told = {frozenset(one.positions) for one in general} if _alone(found) else set()
    yield from (one for one in _by_error(found, say) if frozenset(one.positions) not in told)
    yield from general


def _by_error(found: Analysis, say: Wording) -> Iterator[Sentence]:
    """What repaired each kind of failure. Evidence: the failed calls that were recovered in this way.

    A run of failures that ends in one success counts once, with its last failure (`Analysis.repaired`).
    A repair is named where it was seen at least twice and in LEAST_SHARE of the group's recoveries; where a group
    has a single recovery, that one is told as what it is. That a parameter changed which changes with nearly every
    call is left out, unless the error is about it. No cause is claimed: the counts say what came next.
    """
    by_failure = {one.failure: one for one in found.repaired}
    for group in found.errors[:MAX_GROUPS]:
        recovered = [by_failure[i] for i in group.positions if i in by_failure]
        yield from _of_group(found, group, recovered, say)


def _of_the_user(found: Analysis, repair: Repair) -> bool:
    """Whether it trades a value of the user's own: errors not met so far do not name its parameter."""
    return repair.kind in _TRADING and repair.path in found.users_own


def _alone(found: Analysis) -> bool:
    """Whether calls failed with a single kind of error."""
    return len(found.errors) == 1


def _after_any(found: Analysis, say: Wording) -> Iterator[Sentence]:
    """What repaired failures whatever they said, for errors not met so far. Evidence: the recovered failures.

    The ANY_NAMED most frequent repairs: of several kinds of error and in ANY_SHARE of all recoveries; or, where no
    other kind of error was met, in ANY_SHARE_OF_ONE of them: then the sentence names the error. One that mostly came
    along with another says nothing new.
    """
    group_of = {position: number for number, group in enumerate(found.errors) for position in group.positions}
    alone = _alone(found)
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
        telling = [one for one in telling if alone or not _of_the_user(found, one)]
        if done := _told(found, telling, some, say, examples=alone, plain=True):
            named += 1
            key = "repair_widely" if alone else "repair_any"
            error = say.error(found.errors[group_of[failures[0]]], MAX_MENTION) if alone else ""
            text = say.say(key, error=error, repair=say.both(done), k=len(some), n=n)
            told.update(failures)
            yield Sentence("practices", "repair", text, len(some), n, failures, of_repair(key, len(some), n))


def _of_any(k: int, n: int, kinds: int, alone: bool = False) -> bool:
    """Whether k of n recoveries, of so many kinds of error, say something of errors not met so far; `alone`: no other
    kind was met."""
    return k >= ANY_SHARE * n if kinds > 1 else alone and k >= ANY_SHARE_OF_ONE * n


def since(found: Analysis, totals: Totals, say: Wording) -> Iterator[Sentence]:
    """`repairs` over the whole history, of which the window is the end.

    Evidence: the newest of the failed calls; some of them may have left the store.
    """
    errors = sorted(totals.recovered, key=lambda error: (-totals.recovered[error], error))
    alone = {*errors} >= {error_key(group.label) for group in found.errors} and len(errors) == 1
    named = 0
    for error in errors[:MAX_ERRORS_SINCE]:
        n = totals.recovered[error]
        told = [one for one in totals.of(error)[:PER_GROUP] if n == 1 or (one.k >= 2 and one.k >= LEAST_SHARE * n)]
        for together in _alike(told):
            done = [
                say.repair(one.repair, _form_of(one.repair, one.forms, one.k, say)) for one in together[:MAX_TOGETHER]
            ]
            label = say.message(error, MAX_MENTION)
            widely = alone and named < ANY_NAMED and _of_any(together[0].k, n, kinds=1, alone=True)
            named += widely
            key = "repair_widely_since" if widely else "repair_since"
            yield _since(key, totals, together[0], done, n, say, error=label)
    if alone:
        return
    n = sum(totals.recovered.values())
    own = found.users_own
    any_error = [
        one
        for one in totals.of_any()
        if not (one.repair.kind in _TRADING and (one.repair.path in own or named_as_own(one.repair.path)))
        and _of_any(one.k, n, sum(_holds(totals, e, one.repair) for e in errors))
    ]
    for one in any_error[:ANY_NAMED]:
        yield _since("repair_any_since", totals, one, [say.repair(one.repair)], n, say)


def _holds(totals: Totals, error: str, repair: Repair) -> bool:
    return any(same(one.repair) == same(repair) for one in totals.of(error))


def _alike(told: Sequence[Total]) -> list[list[Total]]:
    """Repairs of the same recoveries, as far as counts and ids tell, are told together."""
    joined: dict[tuple[int, tuple[str, ...]], list[Total]] = {}
    for one in told:
        joined.setdefault((one.k, one.call_ids), []).append(one)
    return list(joined.values())


def _since(key: str, totals: Totals, one: Total, done: list[str], n: int, say: Wording, error: str = "") -> Sentence:
    text = say.say(key, error=error, repair=say.both(done), k=one.k, n=n, since=totals.since)
    value = of_repair(key, one.k, n)
    return Sentence("practices", "repair_since", text, one.k, n, (), value, one.call_ids)


def pointed_at(found: Analysis, say: Wording, totals: Totals | None = None) -> Iterator[Sentence]:
    """Which parameter an error names, where no repair was seen. Evidence: the failures of which that holds."""
    for group in found.errors[:MAX_GROUPS]:
        repaired = _repaired_at(found, group, totals)
        if repaired:
            continue  # told already, or it contradicts that the error is about a parameter
        n = len(group.positions)
        for target in targets(found, group):
            if any(one.path == target.path and {*target.positions} <= {*one.positions} for one in found.refusals):
                continue  # which of its values are refused is told
            k = len(target.positions)
            error = say.error(group, MAX_MENTION)
            key = f"target_{target.how}"
            text = say.say(key, error=error, path=target.path, k=k, n=n)
            yield Sentence("practices", "target", text, k, n, target.positions, worth(key, k))


def _repaired_at(found: Analysis, group: ErrorGroup, totals: Totals | None) -> set[str]:
    """The parameters that repairs of this kind of error are told of: seen twice, or in its only recovery."""
    failures = set(group.positions)
    recovered = [one for one in found.repaired if one.failure in failures]
    leave_out = NoAdvice(found, group)
    counts = [(repair, len(some)) for repair, some in tally(recovered) if not leave_out.holds(repair)]
    n = len(recovered)
    if totals is not None:
        error = error_key(group.label)
        counts, n = [(one.repair, one.k) for one in totals.of(error)], totals.recovered.get(error, 0)
    return {repair.path.partition(".")[0] for repair, k in counts if k >= 2 or n == 1}


def unrecovered(found: Analysis, say: Wording) -> Iterator[Sentence]:
    """Errors after which the tool did not work again. Evidence: failures followed by failures only."""
    for group in found.errors[:MAX_GROUPS]:
        followed = [i for i in group.positions if i in found.followed]
        lost = [i for i in followed if i not in found.worked_after]
        if _hopeless(len(lost), len(followed)):
            text = say.say("unrecovered", error=say.error(group, MAX_MENTION), k=len(lost), n=len(followed))
            value = worth("unrecovered", len(lost))
            yield Sentence("practices", "unrecovered", text, len(lost), len(followed), lost, value)


def _hopeless(lost: int, followed: int) -> bool:
    """Nearly every call after it failed as well, and often enough to be more than bad luck."""
    return lost >= 4 and lost >= 0.9 * followed and wilson_interval(lost, followed)[0] > 0.5


def _of_group(found: Analysis, group: ErrorGroup, recovered: Sequence[Recovery], say: Wording) -> Iterator[Sentence]:
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
        done = _told(found, [one for one in together if not leave_out.holds(one)], some, say)
        if not done:
            continue
        key = "repair_once" if once else "repair"
        text = say.say(key, error=say.error(group, MAX_MENTION), repair=say.both(done), k=k, n=n)
        told.update(failures)
        yield Sentence("practices", "repair", text, k, n, failures, worth(key, k))


def _told(
    found: Analysis,
    together: Sequence[Repair],
    some: Sequence[Recovery],
    say: Wording,
    examples: bool = True,
    plain: bool = False,
) -> list[str]:
    """The repairs in words; unless `plain`, nothing where all to be said is that the only parameter was changed."""
    told = []
    for repair in together[:MAX_TOGETHER]:
        shown = _shown(found, repair, some, say) if examples else ""
        if repair.kind == "changed" and not (shown or repair.after or plain) and len(found.names) == 1:
            continue
        told.append(say.repair(repair, _form(found, repair, some, say), shown))
    return told


def _shown(found: Analysis, repair: Repair, some: Sequence[Recovery], say: Wording) -> str:
    """An example of a changed value, from the change that was made most often."""
    if repair.kind != "changed" or repair.path in found.text_kinds:
        return ""
    change = commonest_change(some, found.seen, repair.path)
    if change is None or (repair.path in found.users_own and not same_in_another_form(*change)):
        return ""  # what another user's value was is no example
    text = spelled(*change)
    return say.say("example", x=text) if text else ""


def _joined(recovered: Sequence[Recovery]) -> list[tuple[list[Repair], list[Recovery]]]:
    """Repairs with the recoveries that hold them; repairs of the very same recoveries are told together."""
    joined: dict[tuple[int, ...], tuple[list[Repair], list[Recovery]]] = {}
    for repair, some in tally(recovered):
        key = tuple(one.failure for one in some)
        joined.setdefault(key, ([], some))[0].append(repair)
    return list(joined.values())


def _form(found: Analysis, repair: Repair, some: Sequence[Recovery], say: Wording) -> str:
    form, count = commonest_form(some, found.seen, repair.path)
    return _form_of(repair, {form: count}, len(some), say)


def _form_of(repair: Repair, forms: Mapping[str, int], n: int, say: Wording) -> str:
    """How the statement that repaired was written, where most of the n were written alike: SHOW TABLES."""
    if repair.kind != "statement" or not repair.after or not forms:
        return ""
    form, count = min(forms.items(), key=lambda item: (-item[1], item[0]))
    if form in {"", repair.after}:
        return ""
    if count == n:
        return form
    return say.say("mostly", kind=repair.after, form=form) if 2 * count > n else ""
