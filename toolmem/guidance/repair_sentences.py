"""Sentences about repairs: after which error what came next, when it worked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from toolmem.guidance.analysis import Analysis
from toolmem.guidance.error_messages import ErrorGroup
from toolmem.guidance.outcomes import passing
from toolmem.guidance.repairs import Recovery, Repair, commonest_change, commonest_form, tally
from toolmem.guidance.sentences import REPAIR_WORTH, Sentence
from toolmem.guidance.statistics import wilson_interval
from toolmem.guidance.wording import MAX_MENTION, Wording, spelled

MAX_GROUPS = 8  # error groups that repairs are named for
PER_GROUP = 3  # repairs named for one of them
MAX_TOGETHER = 3  # repairs told in one sentence
ANY_NAMED, ANY_SHARE = 2, 0.25  # repairs named for any failure, and the share of all recoveries that each must hold
LEAST_SHARE = 0.12  # of the group's recoveries that a repair must hold to be named


def repairs(found: Analysis, say: Wording) -> Iterator[Sentence]:
    """What repaired each kind of failure. Evidence: the failed calls that were recovered in this way.

    A repair is named where it was seen at least twice and in LEAST_SHARE of the group's recoveries; where a group
    has a single recovery, that one is told as what it is. No cause is claimed: the counts say what came next.
    """
    by_failure = {one.failure: one for one in found.recoveries}
    for group in found.errors[:MAX_GROUPS]:
        recovered = [by_failure[i] for i in group.positions if i in by_failure]
        yield from _of_group(found, group, recovered, say)


def after_any(found: Analysis, say: Wording) -> Iterator[Sentence]:
    """What repaired failures whatever they said, for errors not met so far. Evidence: the recovered failures."""
    recovered = found.recoveries
    failures = {one.failure for one in recovered}
    if sum(not failures.isdisjoint(group.positions) for group in found.errors) < 2:
        return
    n = len(recovered)
    group_of = {position: number for number, group in enumerate(found.errors) for position in group.positions}
    for together, some in _joined(recovered)[:ANY_NAMED]:
        k = len(some)
        if k < 3 or k < ANY_SHARE * n:
            return
        largest = max(Counter(group_of[one.failure] for one in some).values())
        if k - largest < max(2, ANY_SHARE * k):
            continue  # it belongs to one kind of error, which tells it already
        done = _told(found, together, some, say, examples=False)
        if not done:
            continue
        text = say.say("repair_any", repair=say.both(done), k=k, n=n)
        yield Sentence("practices", "repair", text, k, n, [one.failure for one in some], 0.5 * k)


def unrecovered(found: Analysis, say: Wording) -> Iterator[Sentence]:
    """Errors after which the tool did not work again. Evidence: failures followed by failures only."""
    recovered = {one.failure for one in found.recoveries}
    for group in found.errors[:MAX_GROUPS]:
        followed = [i for i in group.positions if i in found.followed]
        lost = [i for i in followed if i not in recovered]
        if _hopeless(len(lost), len(followed)):
            text = say.say("unrecovered", error=say.error(group, MAX_MENTION), k=len(lost), n=len(followed))
            yield Sentence("practices", "unrecovered", text, len(lost), len(followed), lost, 0.7 * len(lost))


def rule_out(found: Analysis, say: Wording) -> Iterator[Sentence]:
    """Errors that no further call repaired, where too few followed to call them hopeless. Evidence: those failures."""
    recovered = {one.failure for one in found.recoveries}
    known = sum(outcome is not None for outcome in found.outcomes)
    for group in found.errors[:MAX_GROUPS]:
        if all(passing(found.calls[i]) for i in group.positions):
            continue  # nothing that the agent could look at beforehand
        k = len(group.positions)
        followed = sum(i in found.followed for i in group.positions)
        if k < 2 or k == known or not recovered.isdisjoint(group.positions) or _hopeless(followed, followed):
            continue
        text = say.say("rule_out", error=say.error(group, MAX_MENTION), k=k, n=known)
        yield Sentence("practices", "rule_out", text, k, known, group.positions, 0.3 * k)


def _hopeless(lost: int, followed: int) -> bool:
    """Nearly every call after it failed as well, and often enough to be more than bad luck."""
    return lost >= 4 and lost >= 0.9 * followed and wilson_interval(lost, followed)[0] > 0.5


def _of_group(found: Analysis, group: ErrorGroup, recovered: Sequence[Recovery], say: Wording) -> Iterator[Sentence]:
    n = len(recovered)
    told: set[int] = set()
    for together, some in _joined(recovered):
        k, failures = len(some), [one.failure for one in some]
        # The same failing call sent again and again ends in one repair, not in several.
        once = len({one.success for one in recovered}) == 1
        # A change that only came along with those told already says nothing new.
        new = len(set(failures) - told)
        if len(told) == n or (not once and (k < 2 or k < LEAST_SHARE * n)):
            return
        if not once and new < max(2, LEAST_SHARE * n):
            continue
        done = _told(found, together, some, say)
        if not done:
            continue
        text = say.say(
            "repair_once" if once else "repair", error=say.error(group, MAX_MENTION), repair=say.both(done), k=k, n=n
        )
        told.update(failures)
        yield Sentence("practices", "repair", text, k, n, failures, 0.8 if once else REPAIR_WORTH * k)


def _told(
    found: Analysis, together: Sequence[Repair], some: Sequence[Recovery], say: Wording, examples: bool = True
) -> list[str]:
    """The repairs in words; nothing where all that can be said is that the only parameter was changed."""
    told = []
    only = {str(name) for one in found.seen for name in one.params}
    for repair in together[:MAX_TOGETHER]:
        shown = _shown(found, repair, some, say) if examples else ""
        if repair.kind == "changed" and not (shown or repair.after) and len(only) == 1:
            continue
        told.append(say.repair(repair, _form(found, repair, some, say), shown))
    return told


def _shown(found: Analysis, repair: Repair, some: Sequence[Recovery], say: Wording) -> str:
    """An example of a changed value, from the change that was made most often."""
    if repair.kind != "changed" or repair.path in found.text_kinds:
        return ""
    change = commonest_change(some, found.seen, repair.path)
    text = spelled(*change) if change else ""
    return say.say("example", x=text) if text else ""


def _joined(recovered: Sequence[Recovery]) -> list[tuple[list[Repair], list[Recovery]]]:
    """Repairs with the recoveries that hold them; repairs of the very same recoveries are told together."""
    joined: dict[tuple[int, ...], tuple[list[Repair], list[Recovery]]] = {}
    for repair, some in tally(recovered):
        key = tuple(one.failure for one in some)
        joined.setdefault(key, ([], some))[0].append(repair)
    return list(joined.values())


def _form(found: Analysis, repair: Repair, some: Sequence[Recovery], say: Wording) -> str:
    """How the statement that repaired was written, where most of them were written alike: SHOW TABLES."""
    if repair.kind != "statement" or not repair.after:
        return ""
    form, count = commonest_form(some, found.seen, repair.path)
    if form in {"", repair.after}:
        return ""
    if count == len(some):
        return form
    return say.say("mostly", kind=repair.after, form=form) if 2 * count > len(some) else ""
