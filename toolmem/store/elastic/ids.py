"""Ids of calls: which of them a tool has ever stored, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolmem.store.codec import storable
from toolmem.store.elastic.commits import Step, commit
from toolmem.store.elastic.connection import ItemResult
from toolmem.store.elastic.names import id_doc_id, tool_id, workspace_key
from toolmem.store.elastic.session import Session
from toolmem.store.elastic.tool_state import ToolState, read_state


async def known_ids(session: Session, workspace: str, tool: str, ids: Sequence[str]) -> set[str]:
    """Which of these this tool has ever stored. Writes only where a writer died before it made its ids known."""
    asked = [call_id for call_id in dict.fromkeys(ids) if storable(call_id)]
    if not asked or not storable(workspace) or not storable(tool):
        return set()
    while True:
        state, found = await _read_ids(session, workspace, tool, asked)
        if state is None:
            return set()
        if not owed(session, state, asked, found):
            return known(state, asked, found)
        await commit(session, SettlePlan(workspace, tool))


async def _read_ids(
    session: Session, workspace: str, tool: str, ids: Sequence[str]
) -> tuple[ToolState | None, list[dict[str, Any]]]:
    """First the record, then the id documents: an id is in one of the two from its commit on."""
    tools, documents = session.layout.alias("tools"), session.layout.alias("ids")
    (head,) = await session.connection.multi_get(
        [{"_index": tools, "_id": tool_id(workspace, tool), "routing": workspace_key(workspace)}]
    )
    if not head.get("found"):
        return None, []
    found = await session.connection.multi_get(
        [{"_index": documents, "_id": id_doc_id(workspace, tool, call_id)} for call_id in ids]
    )
    return read_state(head), found


def known(state: ToolState, ids: Sequence[str], answers: Sequence[Mapping[str, Any]]) -> set[str]:
    """Ids that the store gave away, those of the last commit, and those that have a document. `answers`: their gets."""
    unsettled = set(state.outbox)
    return {
        call_id
        for call_id, answer in zip(ids, answers, strict=True)
        if state.row.assigned(call_id) or answer["_id"] in unsettled or has_document(state, answer)
    }


def owed(session: Session, state: ToolState, ids: Sequence[str], answers: Sequence[Mapping[str, Any]]) -> bool:
    """Whether one of them is known by the record alone.

    Its commit may be undone yet: a node that has lost touch with the cluster shows it for a moment. Nobody is told that
    a call is there before an acknowledged write has proved it.
    """
    if session.settled.get(state.id) == state.left_by:
        return False
    unsettled = set(state.outbox)
    return any(answer["_id"] in unsettled and not has_document(state, answer) for answer in answers[: len(ids)])


def has_document(state: ToolState, answer: Mapping[str, Any]) -> bool:
    return bool(answer.get("found")) and answer["_source"]["stem"] == state.row.id_stem


class SettlePlan:
    """Changes nothing: its swap proves that the record stands, and what earlier commits left is done after it."""

    def __init__(self, workspace: str, tool: str) -> None:
        self.workspace = workspace
        self.tool = tool

    def requests(self) -> list[dict[str, Any]]:
        return []

    async def decide(self, state: ToolState | None, found: Sequence[dict[str, Any]]) -> Step[None]:
        if state is None:
            return Step(None)
        state.row.version += 1
        return Step(None, state, leaving=[])

    def learn(self, step: Step[None], writes: Sequence[ItemResult], checks: Sequence[ItemResult]) -> bool:
        return True
