"""Which calls of an agent's own recording no hook was told of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from toolmem.hosts.events import call_id_of
from toolmem.hosts.host import Host, RecordedCall
from toolmem.hosts.payloads import alike
from toolmem.hosts.receipts import Receipt, Receipts


def unseen(
    host: Host, session: str, calls: Iterable[RecordedCall], receipts: Receipts, *, ended: bool = False
) -> Iterator[RecordedCall]:
    """Those that have no receipt; `ended`: none of their end. Without ids, as many as are alike were seen."""
    told = receipts.of_session(session)
    ends = [each for each in told if each.event == "after_call" and not (ended and each.error)]
    begins = [] if ended else [each for each in told if each.event == "before_call"]
    if host.call_ids:
        keys = [each.key for each in (*begins, *ends)]
        known = {*keys, *(call_id_of(session, key) for key in keys)}
        yield from (call for call in calls if call.call_id not in known)
        return
    left = _alike(begins) | _alike(ends)
    for call in calls:
        mark = alike(call.tool, call.arguments)
        if left[mark] > 0:
            left[mark] -= 1
        else:
            yield call


def _alike(told: Iterable[Receipt]) -> Counter[str]:
    return Counter(each.key.partition(" ")[0] for each in told)
