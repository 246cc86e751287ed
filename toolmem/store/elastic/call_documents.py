"""Call documents: written once, named by the tool's record, read by id. What no record names does not exist."""

from __future__ import annotations

import logging
import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from toolmem.models import JudgeIdentity, ToolCallResult
from toolmem.store.codec import GuidanceCache
from toolmem.store.elastic.connection import Connection, Operation
from toolmem.store.elastic.indices import Layout
from toolmem.store.elastic.names import call_doc_id, tool_id, workspace_key
from toolmem.store.elastic.session import Session
from toolmem.store.elastic.tool_state import WITHOUT_OUTBOX, ToolState, read_state
from toolmem.store.window import read_calls, read_figures
from toolmem.stored import StoredMemory

logger = logging.getLogger("toolmem.store")

_FIGURES_ONLY = ["figures"]
_WITH_PAYLOAD = ["figures", "body"]


def write_operation(
    layout: Layout, state: ToolState, seq: int, token: str, writer: str, call: ToolCallResult, payload: str
) -> Operation:
    judge = call.judge
    figures = [call.success, call.execution_failed, call.score, call.time_cost, call.token_cost]
    source = {
        "w": workspace_key(state.workspace),
        "tool": state.id,
        "stem": state.row.id_stem,
        "seq": seq,
        "token": token,
        "writer": writer,
        "written": int(time.time()),
        "figures": [*figures, None if judge is None else [judge.backend, judge.model, judge.prompt_version]],
        "body": payload,
    }
    return Operation("index", layout.alias("calls"), call_doc_id(state.row.id_stem, seq, token), source)


def delete_operations(layout: Layout, documents: Iterable[str]) -> list[Operation]:
    return [Operation("delete", layout.alias("calls"), document) for document in documents]


# -- states and memories


async def read_states(connection: Connection, layout: Layout, workspace: str, tools: Sequence[str]) -> list[ToolState]:
    """In the order asked; missing ones absent. `tools`: storable names."""
    wanted = [_state_request(layout, workspace, tool) for tool in tools]
    return [read_state(found) for found in await connection.multi_get(wanted) if found.get("found")]


def _state_request(layout: Layout, workspace: str, tool: str) -> dict[str, Any]:
    return {
        "_index": layout.alias("tools"),
        "_id": tool_id(workspace, tool),
        "routing": workspace_key(workspace),
        "_source": WITHOUT_OUTBOX,
    }


async def read_memories(
    session: Session,
    states: Sequence[ToolState],
    *,
    calls: bool,
    recent: int | None,
    seqs: Mapping[str, Sequence[int]] | None,
    known: Mapping[str, Hashable],
) -> list[StoredMemory]:
    """Each a consistent snapshot: where a commit removed calls between the two reads, its tool is read again."""
    connection, layout, guidance = session.connection, session.layout, session.guidance
    current: dict[str, ToolState | None] = {state.id: state for state in states}
    unchanged = {state.id for state in states if known.get(state.row.name) == _commit(state)}
    done = {state.id: _memory(guidance, state, [], calls=False) for state in states if state.id in unchanged}
    suspected: dict[str, int] = {}  # tool -> version at which documents were missing already
    waiting = [state for state in states if state.id not in unchanged]
    while waiting:
        chosen = {state.id: _chosen(state, recent, seqs) for state in waiting}
        found = await _fetch(connection, layout, [doc for ids in chosen.values() for doc in ids.values()], calls)
        torn = []
        for state in waiting:
            missing = [seq for seq, doc in chosen[state.id].items() if doc not in found]
            if missing and suspected.get(state.id) != state.row.version:
                suspected[state.id] = state.row.version
                torn.append(state)
                continue
            if missing:  # the record has not changed and still names them
                logger.error("calls %s of tool %r are gone and left out", missing[:20], state.row.name)
            rows = [(seq, found[doc]) for seq, doc in chosen[state.id].items() if doc in found]
            done[state.id] = _memory(guidance, state, rows, calls, whole=not missing)
        waiting = []
        for state in torn:
            again = await read_states(connection, layout, state.workspace, [state.row.name])
            current[state.id] = again[0] if again else None
            waiting += again
    return [done[state.id] for state in states if current[state.id] is not None]


def _chosen(state: ToolState, recent: int | None, seqs: Mapping[str, Sequence[int]] | None) -> dict[int, str]:
    """Documents by seq, oldest first."""
    kept = state.call_ids(state.row.first_seq, state.row.last_seq)
    return {seq: kept[seq] for seq in state.row.shown_seqs(recent, (seqs or {}).get(state.row.name)) if seq in kept}


async def _fetch(
    connection: Connection, layout: Layout, documents: Sequence[str], payload: bool
) -> dict[str, dict[str, Any]]:
    fields = _WITH_PAYLOAD if payload else _FIGURES_ONLY
    index = layout.alias("calls")
    wanted = [{"_index": index, "_id": document, "_source": fields} for document in documents]
    found = await connection.multi_get(wanted) if wanted else []
    return {each["_id"]: each["_source"] for each in found if each.get("found")}


def _commit(state: ToolState) -> Hashable:
    """No two tools bear one stem, and no two writes of a document one position."""
    return state.row.id_stem, state.row.version, state.position


def _memory(
    guidance: GuidanceCache,
    state: ToolState,
    rows: Sequence[tuple[int, Mapping[str, Any]]],
    calls: bool,
    *,
    whole: bool = True,
) -> StoredMemory:
    row, values = state.read_guidance(guidance), [_row(seq, source) for seq, source in rows]
    return StoredMemory(
        record=row.record(state.workspace),
        figures=read_figures(row, values, lambda named: str(_judge(named) or "")),
        calls=read_calls(row, values, _judge) if calls else (),
        state=_commit(state) if whole else None,
    )


def _row(seq: int, source: Mapping[str, Any]) -> tuple[Any, ...]:
    """As `toolmem.store.window` reads it; a damaged one as one that it finds to be damaged."""
    figures = source.get("figures")
    if not isinstance(figures, list) or len(figures) != 6 or (figures[5] and len(figures[5]) != 3):
        figures = ["damaged"] * 5 + [None]
    return (seq, *figures, source.get("body"))


def _judge(named: Sequence[str] | None) -> JudgeIdentity | None:
    if named is None:
        return None
    return JudgeIdentity(backend=named[0], model=named[1], prompt_version=named[2])


async def kept_calls(
    connection: Connection, layout: Layout, state: ToolState, seqs: Iterable[int]
) -> dict[int, ToolCallResult]:
    """Those of these seqs that are kept and readable."""
    kept = state.call_ids(state.row.first_seq, state.row.last_seq)
    documents = {seq: kept[seq] for seq in seqs if seq in kept}
    found = await _fetch(connection, layout, list(documents.values()), payload=True)
    rows = [_row(seq, found[document]) for seq, document in documents.items() if document in found]
    return {call.seq or 0: call for call in read_calls(state.row, rows, _judge)}
