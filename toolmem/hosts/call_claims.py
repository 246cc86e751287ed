"""Who of several processes acts on an event: two installs are told of the same one, and a model says one thing twice.

The first acts. Before a call the others give the answer that the first gave, as long as nothing has come since that
might change it; where the first came to no end, the next takes its place.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from toolmem.hosts.call_receipts import CallClaim, CallKey
from toolmem.hosts.payloads import alike
from toolmem.late_dataclasses import replace

if TYPE_CHECKING:
    from toolmem.hosts.events import HookEvent
    from toolmem.hosts.host import Host
    from toolmem.hosts.receipts import Answered, Receipts

PATIENCE = {"before_call": 1.0, "after_call": 1.0}  # seconds in which the first has come to its end
_PATIENCE = 4.0  # of other events: to hear what the user says takes longer
_LOOK = 0.02  # seconds


def claim(host: Host, event: HookEvent, receipts: Receipts, place: str, moment: float) -> CallClaim:
    """The receipt of an event, for a process that acts on the store at `place`. `moment`: seconds in which two installs
    are told of an event that bears no name of its own.
    """
    if call := _call(event):
        return receipts.claim_call(host.name, event.session_id, event.kind, call, place)
    key, within = _key(event, moment)
    told = (event.session_id, event.kind)
    if receipts.begin(host.name, *told, key, within=within, store=place):
        return CallClaim(key, True)
    if not receipts.is_of_other_store(*told, key, place):
        return CallClaim(key, False)
    there = f"{key} in {place}"  # that of an install on another store, whose rules bind as well
    return CallClaim(there, receipts.begin(host.name, *told, there, within=within, store=place))


def answered_before(event: HookEvent, key: str, receipts: Receipts) -> Answered | None:
    """How the first answered, which is waited for; None where it came to no end, so that this process acts."""
    patience = PATIENCE.get(event.kind, _PATIENCE)
    while (first := receipts.answered(event.session_id, event.kind, key)) is not None and first.ended is None:
        if not 0 <= time.time() - first.began < patience:
            return None
        time.sleep(_LOOK)
    return None if first is None or first.error else first


def noted_answer(first: Answered | None) -> Mapping[str, Any] | None:
    """What `Acting` noted of its answer before a call, where nothing has come since."""
    if first is None or not first.is_newest or not isinstance(first.note, Mapping):
        return None
    return first.note if "answer" in first.note else None


def noted_before(host: Host, event: HookEvent, key: str, receipts: Receipts) -> Mapping[str, Any] | None:
    """What was noted before the call that has ended now with the receipt `key`."""
    if host.call_ids:
        noted = receipts.note_of(event.session_id, "before_call", key)
    else:
        noted = receipts.newest_note(event.session_id, "before_call", alike(event.tool, event.arguments))
    return noted if isinstance(noted, Mapping) else None


def with_record_id(event: HookEvent, key: str, receipts: Receipts) -> HookEvent:
    """The ended call under the id that it is kept by."""
    call = _call(event)
    return replace(event, call_id=receipts.record_id(event.session_id, call, key)) if call else event


def _call(event: HookEvent) -> CallKey | None:
    if event.kind not in {"before_call", "after_call"} or not event.call_id:
        return None
    return CallKey.of(event.call_id, event.tool, event.arguments)


def _key(event: HookEvent, moment: float) -> tuple[str, float | None]:
    """What tells the event from all others of its session, and for how long where it is only what it holds."""
    if event.key and not event.key.endswith(" "):
        return event.key, None
    if event.key and event.tool:  # a call without its moment
        return event.key, moment
    told = (event.origin, event.prompt, event.tool, event.arguments, event.output)
    return sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest(), moment
