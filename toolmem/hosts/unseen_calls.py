"""Which calls of an agent's own recording no hook was told of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from toolmem.hosts.call_receipts import CallKey, call_in, numbered
from toolmem.hosts.host import Host, RecordedCall
from toolmem.hosts.payloads import alike
from toolmem.hosts.receipts import Receipt, Receipts
from toolmem.late_dataclasses import replace


def unseen(
    host: Host, session: str, calls: Iterable[RecordedCall], receipts: Receipts, *, ended: bool = False
) -> Iterator[RecordedCall]:
    """Those that have no receipt, under the ids that they are kept by; `ended`: none of their end.

    Without ids, as many as are alike were seen.
    """
    told = receipts.of_session(session)
    ends = [each for each in told if each.event == "after_call" and not (ended and each.error)]
    begins = [] if ended else [each for each in told if each.event == "before_call"]
    if host.call_ids:
        yield from _unseen_ids(calls, begins, ends)
        return
    left = _alike(begins) | _alike(ends)
    for call in calls:
        mark = alike(call.tool, call.arguments)
        if left[mark] > 0:
            left[mark] -= 1
        else:
            yield call


def _unseen_ids(
    calls: Iterable[RecordedCall], begins: Iterable[Receipt], ends: Iterable[Receipt]
) -> Iterator[RecordedCall]:
    """A call is known again by its id and what it is; by its id alone where that is its first, because another hook
    may have changed what it was given.
    """
    left = _named(begins) | _named(ends)
    ids = {call_id for call_id, _ in left}
    ended: Counter[tuple[str, str]] = _named(ends)
    begun: Counter[str] = Counter()
    for call in calls:
        key = CallKey.of(call.call_id, call.tool, call.arguments)
        begun[key.call_id] += 1
        if left[key] > 0:
            left[key] -= 1
        elif begun[key.call_id] > 1 or key.call_id not in ids:
            again = ended[key]
            shared = again > 0 or any(call_id == key.call_id for call_id, _ in ended)
            ended[key] += not call.denied
            yield replace(call, call_id=numbered(key, again, shared))


def _named(told: Iterable[Receipt]) -> Counter[tuple[str, str]]:
    return Counter(named for each in told if (named := call_in(each.key)) is not None)


def _alike(told: Iterable[Receipt]) -> Counter[str]:
    return Counter(each.key.partition(" ")[0] for each in told)
