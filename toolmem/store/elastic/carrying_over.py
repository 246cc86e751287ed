"""Indices of 0.1 become those of today: they get the fields that are new, and the kept calls their place in the log.

From then on 0.1 refuses them. A process of 0.1 that has them open should be ended before: calls that it still writes
have no place in the log.
"""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from toolmem.light_models import conversation_told
from toolmem.store.codec import CALL_FAULTS
from toolmem.store.elastic import positions
from toolmem.store.elastic.cluster import BULK_ITEMS, PAGE, BulkItem, pages
from toolmem.store.elastic.document_ids import digest
from toolmem.store.elastic.indices import add_fields, mark_as_newest
from toolmem.store.elastic.session import Session
from toolmem.store.elastic.tool_state import ToolState, read_state

logger = logging.getLogger("toolmem.store")


class _Arrival(NamedTuple):
    """A kept call, in the order of the log."""

    arrived: int  # when it was made, but not before those that its tool had before it
    tool: str
    seq: int
    document: str
    told: dict[str, Any]  # what the log has to know


async def carry_over(session: Session) -> None:
    """Whoever opens such a store first does it; two at once do the same. What is stopped half way is done again."""
    connection, layout = session.connection, session.layout
    await add_fields(connection, layout)
    tools = layout.alias("tools")
    await connection.refresh(tools)
    arrivals: dict[str, list[_Arrival]] = defaultdict(list)
    async for page in pages(connection.scan(tools, {"match_all": {}}, source=["body"])):
        for state in map(read_state, page):
            arrivals[state.workspace] += await _arrivals(session, state)
    for workspace, calls in arrivals.items():
        await _log(session, workspace, sorted(calls, key=lambda call: call[:3]))
    await mark_as_newest(connection, layout)
    count = sum(map(len, arrivals.values()))
    logger.info("the indices %s-* of an older toolmem were carried over, %d calls are logged", layout.prefix, count)


async def _arrivals(session: Session, state: ToolState) -> list[_Arrival]:
    kept, arrived, arrivals = list(state.kept_ids().items()), 0, []
    for start in range(0, len(kept), PAGE):
        page = kept[start : start + PAGE]
        found = await session.connection.multi_get([session.wanted("calls", each, None, ["body"]) for _, each in page])
        for (seq, document), each in zip(page, found, strict=True):
            if each.get("found"):
                created, told = _told(str(each["_source"].get("body")))
                arrived = max(created, arrived)
                arrivals.append(_Arrival(arrived, state.id, seq, document, told))
    return arrivals


async def _log(session: Session, workspace: str, calls: Sequence[_Arrival]) -> None:
    """Give the calls of a workspace their places."""
    index, options = session.layout.alias("calls"), {"retry_on_conflict": 5}
    for start in range(0, len(calls), BULK_ITEMS):
        items = []
        for place, call in enumerate(calls[start : start + BULK_ITEMS], start + 1):
            position = place << positions.MARK_BITS
            update = {"doc": {**call.told, "position": position}}
            items.append(BulkItem("update", index, call.document, update, None, options))
        results = await session.connection.bulk([*items, positions.raised(session, "calls", workspace, position)])
        session.connection.require(results[:-1])


def _told(body: str) -> tuple[int, dict[str, Any]]:
    """When a call was made, and what else the log has to know."""
    told: dict[str, Any] = {"size": len(body.encode())}
    try:
        read = json.loads(body)
        if (conversation := conversation_told(read.get("metadata") or {})) is not None:
            told["conversation"] = digest(conversation)
        return int(read["create_time"]), told
    except (*CALL_FAULTS, AttributeError):  # damaged: it is kept as it is, and named when it is read
        return 0, told
