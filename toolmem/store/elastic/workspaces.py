"""Whole workspaces: their names, their counts, their end; and tools deleted by memory id."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from toolmem.protocols import OF_THE_STORE
from toolmem.store.codec import storables
from toolmem.store.elastic import rule_stamps
from toolmem.store.elastic.cluster import BULK_ITEMS, BulkItem, ItemResult, pages
from toolmem.store.elastic.document_ids import label, workspace_key
from toolmem.store.elastic.generations import stored_generation
from toolmem.store.elastic.indices import SCHEMA_VERSION
from toolmem.store.elastic.keyed_records import buckets
from toolmem.store.elastic.session import Session
from toolmem.store.elastic.tool_state import WITHOUT_OUTBOX, ToolState, read_state

_HELD_IN = ("tools", "records", "verdicts", "decisions")
_COUNTED = ("tools", "calls", "records", "verdicts", "logged_calls", "decisions")


async def names(session: Session) -> list[str]:
    """Sorted."""
    return list(await _held(session))


async def _held(session: Session) -> dict[str, dict[str, int]]:
    """By workspace, sorted; those that hold a tool memory, a record, a verdict or a decision."""
    await session.connection.refresh(*(session.layout.alias(kind) for kind in _HELD_IN))
    found: dict[str, dict[str, int]] = {}
    for kind in _HELD_IN:
        inner = {"kept": {"sum": {"field": "kept"}}} if kind == "tools" else {}
        async for name, bucket in buckets(session, kind, "workspace", inner=inner):
            each = found.setdefault(name, dict.fromkeys(_COUNTED, 0))
            each[kind] = bucket["doc_count"]
            if kind == "tools":
                each["calls"] = int(bucket["kept"]["value"])
    found.pop(OF_THE_STORE, None)
    return dict(sorted(found.items()))


async def counts(session: Session) -> dict[str, dict[str, int]]:
    """The same, with the logged calls."""
    await session.connection.refresh(session.layout.alias("calls"))
    found = await _held(session)
    told = {workspace_key(name): name for name in found}
    logged = {"logged": {"filter": {"exists": {"field": "position"}}}}
    async for key, bucket in buckets(session, "calls", "w", inner=logged):
        if key in told:
            found[told[key]]["logged_calls"] = bucket["logged"]["doc_count"]
    return found


async def info(session: Session, server: str) -> dict[str, Any]:
    generation = await stored_generation(session)
    return {
        "backend": "elasticsearch",
        "location": f"{session.connection.location} ({session.layout.prefix}-*)",
        "server": server,
        "schema_version": SCHEMA_VERSION,
        "embedder": None if generation is None else asdict(generation.embedder),
        "workspaces": await counts(session),
    }


async def all_states(session: Session, workspace: str) -> list[ToolState]:
    """Every tool of a workspace, by name."""
    hits = session.held("tools", workspace, source=WITHOUT_OUTBOX)
    return sorted([read_state(hit) async for hit in hits], key=lambda state: state.row.name)


async def tool_names(session: Session, workspace: str) -> list[str]:
    hits = session.held("tools", workspace, source=False, docvalue_fields=["name"])
    return sorted([await session.whole("tools", "name", hit["fields"]["name"][0]) async for hit in hits])


# -- deleting


async def delete_workspace(session: Session, workspace: str) -> int:
    """Answers how many tool memories there were."""
    of_it = {"w": workspace_key(workspace)}
    tools = await _delete_all(session, of_it, ("tools", "verdicts", "decisions", "calls", "ids"))
    await _delete_all(session, of_it, ("records",), partial(rule_stamps.write, session, workspace))
    return tools


async def delete_tools(session: Session, workspace: str) -> int:
    """The same; keyed records and verdicts stay."""
    return await _delete_all(session, {"w": workspace_key(workspace)}, ("tools", "calls", "ids"))


Send = Callable[[Sequence[BulkItem]], Awaitable[list[ItemResult]]]


async def _delete_all(session: Session, term: Mapping[str, str], kinds: Sequence[str], send: Send | None = None) -> int:
    """The documents of tools go first: without them the calls do not exist. Answers how many of the first kind went."""
    await session.connection.refresh(*(session.layout.alias(kind) for kind in kinds))
    deleted = []
    for kind in kinds:
        index, gone = session.layout.alias(kind), 0
        async for page in pages(session.connection.scan(index, {"term": term}, source=False), BULK_ITEMS):
            items = [BulkItem("delete", index, hit["_id"], routing=hit.get("_routing")) for hit in page]
            gone += await _delete(session, items, send)
        deleted.append(gone)
    return deleted[0]


async def _delete(session: Session, items: Sequence[BulkItem], send: Send | None = None) -> int:
    outcomes = await (send or session.connection.bulk)(items)
    session.connection.require(outcomes)
    return sum(outcome.status == 200 for outcome in outcomes)


async def tools_of_memory_ids(session: Session, workspace: str, memory_ids: Sequence[str]) -> dict[str, ToolState]:
    """By memory id."""
    if not memory_ids:
        return {}
    shown = {"terms": {"memory_id": sorted({label(each) for each in memory_ids})}}
    states = [read_state(hit) async for hit in session.held("tools", workspace, shown, source=WITHOUT_OUTBOX)]
    return {state.row.memory_id: state for state in states}


async def delete_memories(session: Session, workspace: str, memory_ids: Sequence[str]) -> list[str]:
    asked = storables(memory_ids)
    found = await tools_of_memory_ids(session, workspace, asked)
    deleted = []
    for memory_id in asked:
        if memory_id in found:
            state = found[memory_id]
            tool = BulkItem("delete", session.layout.alias("tools"), state.id, routing=workspace_key(workspace))
            if await _delete(session, [tool]):
                deleted.append(memory_id)
            await _delete_all(session, {"stem": state.row.id_stem}, ("calls", "ids"))
    return deleted
