"""What the guard decided: one document per decision, in the order in which decisions were first logged."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Mapping, Sequence
from typing import Any

from toolmem.errors import Conflict, StoreError
from toolmem.store.codec import storables
from toolmem.store.elastic import positions
from toolmem.store.elastic.cluster import PAGE, BulkItem, compact
from toolmem.store.elastic.document_ids import digest, label, workspace_key
from toolmem.store.elastic.session import Session
from toolmem.store.logged_decisions import read_decision
from toolmem.stored import LoggedDecision

logger = logging.getLogger("toolmem.store")

_TRIMS = 100  # how often beyond the limit, per as many decisions as the limit allows


async def write(session: Session, workspace: str, decision: LoggedDecision, text: str, most: int) -> None:
    """See `MemoryStore.log_decision`. `text`: the decision as JSON.

    The oldest go now and then: there may be some hundredths more than `most`.
    """
    give_up = session.connection.deadline()
    while not await _written(session, workspace, decision, text, give_up):
        if time.monotonic() > give_up:
            raise Conflict(f"workspace {workspace!r}: decision {decision.id!r} kept changing; try again")
    if random.random() * most < _TRIMS:
        try:
            await _shorten(session, workspace, most)
        except StoreError as error:  # the decision is logged all the same
            logger.warning("workspace %r has more decisions than its limit for now: %s", workspace, error)


async def _written(session: Session, workspace: str, decision: LoggedDecision, text: str, give_up: float) -> bool:
    document = digest(workspace, decision.id)
    highest = positions.wanted(session, "decisions", workspace)
    wanted = [session.wanted("decisions", document, workspace, ["position"]), highest]
    found, highest = await session.connection.multi_get(wanted, deadline=give_up)
    items, options = [], {"if_seq_no": found.get("_seq_no"), "if_primary_term": found.get("_primary_term")}
    if found.get("found"):
        position = found["_source"]["position"]
    else:
        (position,), options = positions.given(session, highest, 1), {"op_type": "create"}
        items = [positions.raised(session, "decisions", workspace, position)]
    source = {
        "w": workspace_key(workspace),
        "workspace": label(workspace),
        "position": position,
        "conversation": digest(decision.conversation_id),
        "tool": digest(decision.tool_name),
        "body": compact({"workspace": workspace}),
        "value": text,
    }
    place = session.layout.alias("decisions"), document
    items.append(BulkItem("index", *place, source, workspace_key(workspace), options))
    *_, result = await session.connection.bulk(items, deadline=give_up)
    if result.status != 409:
        session.connection.require([result])
    return result.status != 409


async def _shorten(session: Session, workspace: str, most: int) -> None:
    """Delete the oldest beyond the limit. How many are too many and which they are is told by one search, so that two
    writers at once delete the same.
    """
    index, routing = session.layout.alias("decisions"), workspace_key(workspace)
    asked = {"index": index, "routing": routing, "query": {"term": {"w": routing}}, "size": PAGE, "source": False}
    excess = 1
    while excess > 0:
        await session.connection.refresh(index)
        answer = await session.connection.search(**asked, sort=[{"position": "asc"}], track_total_hits=True)
        excess = answer["hits"]["total"]["value"] - most
        oldest = answer["hits"]["hits"][: max(excess, 0)]
        gone = [BulkItem("delete", index, hit["_id"], routing=routing) for hit in oldest]
        session.connection.require(await session.connection.bulk(gone))


async def read(
    session: Session,
    workspace: str,
    *,
    ids: Sequence[str] | None = None,
    conversation: str | None = None,
    tool: str | None = None,
    limit: int = 100,
) -> list[LoggedDecision]:
    """See `MemoryStore.decisions`. By ids: as they are now, without a search."""
    sources: list[Mapping[str, Any]] = []
    if ids is not None:
        asked = [digest(workspace, each) for each in dict.fromkeys(storables(ids))]
        found = await session.connection.multi_get([session.wanted("decisions", each, workspace) for each in asked])
        sources = [each["_source"] for each in found if each.get("found")]
        sources.sort(key=lambda source: -source["position"])
    else:
        filters = [{"term": {"w": workspace_key(workspace)}}]
        told = {"conversation": conversation, "tool": tool}
        filters += [{"term": {name: digest(value)}} for name, value in told.items() if value is not None]
        await session.connection.refresh(session.layout.alias("decisions"))
        sources = [hit["_source"] for hit in await _hits(session, workspace, filters, limit, "desc", source=["value"])]
    decisions = [each for source in sources if (each := read_decision(str(source["value"]))) is not None]
    fitting = (
        each for each in decisions if conversation in (None, each.conversation_id) and tool in (None, each.tool_name)
    )
    return list(fitting)[: max(limit, 0)]


async def _hits(
    session: Session, workspace: str, filters: Sequence[Mapping[str, Any]], limit: int, order: str, **wanted: Any
) -> list[dict[str, Any]]:
    """So many, in the order of their positions."""
    found: list[dict[str, Any]] = []
    place: dict[str, Any] = {"index": session.layout.alias("decisions"), "routing": workspace_key(workspace)}
    query = {"bool": {"filter": list(filters)}}
    while len(found) < limit:
        size = min(limit - len(found), PAGE)
        after = {"search_after": found[-1]["sort"]} if found else {}
        answer = await session.connection.search(
            **place, query=query, size=size, sort=[{"position": order}], track_total_hits=False, **after, **wanted
        )
        found += answer["hits"]["hits"]
        if len(answer["hits"]["hits"]) < size:
            break
    return found
