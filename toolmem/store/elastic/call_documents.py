"""Call documents: written once, named by the tool's record, read by id. What no record names does not exist."""

from __future__ import annotations

import logging
import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from toolmem.light_models import conversation_told
from toolmem.models import JudgeIdentity, ToolCallResult
from toolmem.store.codec import PreparedCall
from toolmem.store.elastic.cluster import BulkItem
from toolmem.store.elastic.document_ids import call_doc_id, digest, tool_id, workspace_key
from toolmem.store.elastic.indices import Layout
from toolmem.store.elastic.session import Session
from toolmem.store.elastic.tool_state import WITHOUT_OUTBOX, ToolState, read_state
from toolmem.store.semantics import ToolRow
from toolmem.store.window import read_calls, read_figures
from toolmem.stored import StoredMemory

logger = logging.getLogger("toolmem.store")

TOLD = ("position", "conversation", "size")  # fields by which the log finds a call


def call_item(
    session: Session, state: ToolState, seq: int, token: str, item: PreparedCall, told: Mapping[str, Any]
) -> BulkItem:
    """`told`: the fields by which the log finds the call."""
    call, judge = item.call, item.call.judge
    figures = [call.success, call.execution_failed, call.score, call.time_cost, call.token_cost]
    source = {
        "w": workspace_key(state.workspace),
        "tool": state.id,
        "stem": state.row.id_stem,
        "seq": seq,
        "token": token,
        "writer": session.writer,
        "written": int(time.time()),
        "figures": [*figures, None if judge is None else [judge.backend, judge.model, judge.prompt_version]],
        "body": item.payload,
        **told,
    }
    return BulkItem("index", session.layout.alias("calls"), call_doc_id(state.row.id_stem, seq, token), source)


def told_of(item: PreparedCall, position: int) -> dict[str, Any]:
    """The fields of a call's document by which the log finds it."""
    conversation = conversation_told(item.call.metadata)
    told = {} if conversation is None else {"conversation": digest(conversation)}
    return {"position": position, "size": len(item.payload.encode()), **told}


def delete_items(layout: Layout, documents: Iterable[str]) -> list[BulkItem]:
    return [BulkItem("delete", layout.alias("calls"), document) for document in documents]


# -- states and memories


async def read_states(session: Session, workspace: str, tools: Sequence[str]) -> list[ToolState]:
    """In the order asked; missing ones absent. `tools`: storable names."""
    wanted = [session.wanted("tools", tool_id(workspace, tool), workspace, WITHOUT_OUTBOX) for tool in tools]
    return [read_state(found) for found in await session.connection.multi_get(wanted) if found.get("found")]


async def read_memories(
    session: Session,
    states: Sequence[ToolState],
    *,
    calls: bool = False,
    recent: int | None = None,
    seqs: Mapping[str, Sequence[int]] | None = None,
    known: Mapping[str, Hashable] | None = None,
) -> list[StoredMemory]:
    """Each a consistent snapshot: where a commit removed calls between the two reads, its tool is read again."""
    current: dict[str, ToolState | None] = {state.id: state for state in states}
    done: dict[str, StoredMemory] = {}
    suspected: dict[str, int] = {}  # tool -> version at which documents were missing already
    waiting, fields = [], ["figures", "body"] if calls else ["figures"]
    for state in states:
        if (known or {}).get(state.row.name) == _commit(state):
            done[state.id] = _memory(session, state, [], calls=False)
        else:
            waiting.append(state)
    while waiting:
        chosen = {state.id: _chosen(state, recent, seqs) for state in waiting}
        found = await _fetch(session, [doc for ids in chosen.values() for doc in ids.values()], fields)
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
            done[state.id] = _memory(session, state, rows, calls, whole=not missing)
        waiting = []
        for state in torn:
            again = await read_states(session, state.workspace, [state.row.name])
            current[state.id] = again[0] if again else None
            waiting += again
    return [done[state.id] for state in states if current[state.id] is not None]


def _chosen(state: ToolState, recent: int | None, seqs: Mapping[str, Sequence[int]] | None) -> dict[int, str]:
    """Documents by seq, oldest first."""
    kept = state.kept_ids()
    return {seq: kept[seq] for seq in state.row.shown_seqs(recent, (seqs or {}).get(state.row.name)) if seq in kept}


async def _fetch(session: Session, documents: Sequence[str], fields: Sequence[str]) -> dict[str, dict[str, Any]]:
    found = await session.connection.multi_get([session.wanted("calls", each, None, fields) for each in documents])
    return {each["_id"]: each["_source"] for each in found if each.get("found")}


def _commit(state: ToolState) -> Hashable:
    """No two tools bear one stem, and no two writes of a document one position."""
    return state.row.id_stem, state.row.version, state.position


def _memory(
    session: Session,
    state: ToolState,
    rows: Sequence[tuple[int, Mapping[str, Any]]],
    calls: bool,
    *,
    whole: bool = True,
) -> StoredMemory:
    row, values = state.read_guidance(session.guidance), [_row(seq, source) for seq, source in rows]
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


def read_call(row: ToolRow, seq: int, source: Mapping[str, Any]) -> tuple[ToolCallResult, ...]:
    """None where it is damaged: then that is logged."""
    return read_calls(row, [_row(seq, source)], _judge)


KeptCall = tuple["ToolCallResult", dict[str, Any]]  # with the fields by which the log finds it


async def kept_calls(session: Session, state: ToolState, seqs: Sequence[int]) -> dict[int, KeptCall]:
    """Those of these seqs that are kept and readable."""
    documents = _chosen(state, None, {state.row.name: seqs})
    found = await _fetch(session, list(documents.values()), ["figures", "body", *TOLD])
    return {
        seq: (call, {name: found[document][name] for name in TOLD if name in found[document]})
        for seq, document in documents.items()
        if document in found
        for call in read_call(state.row, seq, found[document])
    }
