"""Whole workspaces: their names, their counts, their end; and tools deleted by memory id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from toolmem.protocols import OF_THE_STORE
from toolmem.store.codec import storable
from toolmem.store.elastic import embedders
from toolmem.store.elastic.connection import BULK_ITEMS, Operation
from toolmem.store.elastic.indices import SCHEMA_VERSION
from toolmem.store.elastic.keyed_records import buckets, whole
from toolmem.store.elastic.names import is_cut, label, workspace_key
from toolmem.store.elastic.session import Session
from toolmem.store.elastic.tool_state import WITHOUT_OUTBOX, ToolState, read_state

_HELD_IN = ("tools", "records", "verdicts")
_ROUTED = frozenset(_HELD_IN)


async def counts(session: Session) -> dict[str, dict[str, int]]:
    """By workspace, sorted; those that hold a tool memory, a record or a verdict."""
    await session.connection.refresh(*(session.layout.alias(kind) for kind in _HELD_IN))
    found: dict[str, dict[str, int]] = {}
    for kind in _HELD_IN:
        index = session.layout.alias(kind)
        inner = {"kept": {"sum": {"field": "kept"}}} if kind == "tools" else {}
        async for bucket in buckets(session, index, {"match_all": {}}, "workspace", inner=inner):
            shown = bucket["key"]["value"]
            name = await whole(session, index, "workspace", shown) if is_cut(shown) else shown
            each = found.setdefault(name, {"tools": 0, "calls": 0, "records": 0, "verdicts": 0})
            each[kind] = bucket["doc_count"]
            if kind == "tools":
                each["calls"] = int(bucket["kept"]["value"])
    found.pop(OF_THE_STORE, None)
    return dict(sorted(found.items()))


async def info(session: Session, server: str) -> dict[str, Any]:
    claim = await embedders.stored_claim(session.connection, session.layout)
    return {
        "backend": "elasticsearch",
        "location": f"{session.connection.location} ({session.layout.prefix}-*)",
        "server": server,
        "schema_version": SCHEMA_VERSION,
        "embedder": None if claim is None else asdict(claim.embedder),
        "workspaces": await counts(session),
    }


async def all_states(session: Session, workspace: str) -> list[ToolState]:
    """Every tool of a workspace, by name."""
    if not storable(workspace):
        return []
    index, routing = session.layout.alias("tools"), workspace_key(workspace)
    await session.connection.refresh(index)
    hits = session.connection.scan(index, {"term": {"w": routing}}, routing=routing, source=WITHOUT_OUTBOX)
    return sorted([read_state(hit) async for hit in hits], key=lambda state: state.row.name)


async def tool_names(session: Session, workspace: str) -> list[str]:
    if not storable(workspace):
        return []
    index, routing = session.layout.alias("tools"), workspace_key(workspace)
    await session.connection.refresh(index)
    hits = session.connection.scan(
        index, {"term": {"w": routing}}, routing=routing, source=False, docvalue_fields=["name"]
    )
    shown = [hit["fields"]["name"][0] async for hit in hits]
    return sorted([await whole(session, index, "name", name) if is_cut(name) else name for name in shown])


# -- deleting


async def delete_workspace(session: Session, workspace: str) -> int:
    """Answers how many tool memories there were."""
    return await _delete_all(session, workspace, ("tools", "records", "verdicts", "calls", "ids"))


async def delete_tools(session: Session, workspace: str) -> int:
    """The same; keyed records and verdicts stay."""
    return await _delete_all(session, workspace, ("tools", "calls", "ids"))


async def _delete_all(session: Session, workspace: str, kinds: Sequence[str]) -> int:
    """The documents of tools go first: without them the calls do not exist."""
    if not storable(workspace):
        return 0
    query = {"term": {"w": workspace_key(workspace)}}
    await session.connection.refresh(*(session.layout.alias(kind) for kind in kinds))
    deleted = {kind: await _delete_found(session, kind, query) for kind in kinds}
    return deleted["tools"]


async def _delete_found(session: Session, kind: str, query: Mapping[str, Any]) -> int:
    index = session.layout.alias(kind)
    gone = 0
    waiting: list[Operation] = []
    async for hit in session.connection.scan(index, query, source=False):
        waiting.append(Operation("delete", index, hit["_id"], routing=hit.get("_routing")))
        if len(waiting) == BULK_ITEMS:
            gone += await _delete(session, waiting)
            waiting = []
    return gone + await _delete(session, waiting)


async def _delete(session: Session, operations: Sequence[Operation]) -> int:
    outcomes = await session.connection.bulk(operations)
    session.connection.require(outcomes)
    return sum(outcome.status == 200 for outcome in outcomes)


async def tools_of_memory_ids(
    session: Session, workspace: str, memory_ids: Sequence[str]
) -> dict[str, tuple[str, str]]:
    """By memory id: the document of its tool, and the stem by which its calls are known."""
    if not memory_ids:
        return {}
    index, routing = session.layout.alias("tools"), workspace_key(workspace)
    await session.connection.refresh(index)
    shown = sorted({label(each) for each in memory_ids})
    query = {"bool": {"filter": [{"term": {"w": routing}}, {"terms": {"memory_id": shown}}]}}
    hits = session.connection.scan(index, query, routing=routing, source=WITHOUT_OUTBOX)
    states = [read_state(hit) async for hit in hits]
    return {state.row.memory_id: (state.id, state.row.id_stem) for state in states}


async def delete_memories(session: Session, workspace: str, memory_ids: Sequence[str]) -> list[str]:
    asked = [each for each in dict.fromkeys(memory_ids) if storable(each)]
    if not storable(workspace):
        return []
    found = await tools_of_memory_ids(session, workspace, asked)
    deleted = []
    for memory_id in asked:
        if memory_id not in found:
            continue
        document, stem = found[memory_id]
        tool = Operation("delete", session.layout.alias("tools"), document, routing=workspace_key(workspace))
        if await _delete(session, [tool]):
            deleted.append(memory_id)
        await session.connection.refresh(session.layout.alias("calls"), session.layout.alias("ids"))
        for kind in ("calls", "ids"):
            await _delete_found(session, kind, {"term": {"stem": stem}})
    return deleted
