"""Work that a commit leaves for after its swap: what to delete, what the window dropped, ids to make known.

Only an acknowledged swap of one's own proves that a record will stay. What is read may come from a node that has lost
touch with the cluster, and may be undone. So nothing is deleted and no id is made known on the strength of a read: a
commit carries over what its predecessor left, unless that is seen to be done, and does all of it after its own swap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolmem.store.elastic import dropped_calls
from toolmem.store.elastic.call_documents import delete_items
from toolmem.store.elastic.cluster import BulkItem, ItemResult
from toolmem.store.elastic.document_ids import call_doc_id, workspace_key
from toolmem.store.elastic.indices import Layout
from toolmem.store.elastic.session import Session
from toolmem.store.elastic.tool_state import Run, ToolState

_LOOK: dict[str, Any] = {"doc": {}}  # an update of nothing: writes nothing, and tells whether there is a document


@dataclass(slots=True)
class Leaves:
    """What a commit leaves for after its swap, as `ToolState` names it."""

    leaving: list[Run] = field(default_factory=list)
    dropped: list[Run] = field(default_factory=list)
    outbox: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Leftovers:
    """Of an earlier commit, as a later one finds them in the record."""

    stem: str
    calls: list[tuple[int, str]]  # seq and token of call documents to delete
    dropped: list[tuple[int, str]]  # of those that the window dropped
    ids: list[str]  # id documents to write

    def looks(self, layout: Layout) -> list[BulkItem]:
        """To be sent with the bulk of the later commit, on its way to its own swap."""
        index = layout.alias("calls")
        calls = [BulkItem("update", index, call_doc_id(self.stem, seq, token), _LOOK) for seq, token in self.calls]
        return [*calls, *look_for_ids(layout, [*self._blocks(), *self.ids])]

    def _blocks(self) -> list[str]:
        return list(dict.fromkeys(dropped_calls.document_of(self.stem, seq) for seq, _ in self.dropped))

    def keep_undone(self, seen: Sequence[ItemResult]) -> None:
        """`seen`: the answers to `looks`. What is done already is not carried any further."""
        answers = iter(seen)
        self.calls = [each for each, result in zip(self.calls, answers, strict=False) if result.status != 404]
        told = [dropped_calls.told(self.stem, result.found) for _, result in zip(self._blocks(), answers, strict=False)]
        written = {document for block in told for document in block.values()}
        self.dropped = [each for each in self.dropped if call_doc_id(self.stem, *each) not in written]
        self.ids = [each for each, result in zip(self.ids, answers, strict=True) if not names_tool(result, self.stem)]

    def with_more(self, more: Leaves) -> Leaves:
        """As the record of the later commit holds them."""
        leaving, dropped = [*_runs(self.calls), *more.leaving], [*_runs(self.dropped), *more.dropped]
        return Leaves(leaving, dropped, [*self.ids, *more.outbox])


def _runs(calls: Sequence[tuple[int, str]]) -> list[Run]:
    return [(seq, seq, token) for seq, token in calls]


def found_in(session: Session, state: ToolState) -> Leftovers:
    """Nothing where this session has done after its own swap what the last commit left."""
    if session.settled.get(state.id) == state.left_by:
        return Leftovers(state.row.id_stem, [], [], [])
    return Leftovers(state.row.id_stem, _single(state.leaving), _single(state.dropped), list(state.outbox))


def _single(runs: Sequence[Run]) -> list[tuple[int, str]]:
    return [(seq, token) for first, last, token in runs for seq in range(first, last + 1)]


def settling(layout: Layout, state: ToolState) -> list[BulkItem]:
    """What the commit that made this state does once its swap was acknowledged."""
    stem = state.row.id_stem
    leaving = (call_doc_id(stem, seq, token) for seq, token in _single(state.leaving))
    source = {"w": workspace_key(state.workspace), "stem": stem}
    ids = (BulkItem("index", layout.alias("ids"), document, source) for document in state.outbox)
    return [*delete_items(layout, leaving), *dropped_calls.add_items(layout, state), *ids]


def look_for_ids(layout: Layout, documents: Iterable[str]) -> list[BulkItem]:
    index = layout.alias("ids")
    return [BulkItem("update", index, each, _LOOK, None, {"_source": True}) for each in documents]


def names_tool(result: ItemResult, stem: str) -> bool:
    """Whether the id document that was looked for is there, and of this tool as it lives now."""
    return result.found is not None and result.found.get("stem") == stem


# -- which ids of calls a tool has ever stored, and how sure that is


def known(state: ToolState, ids: Sequence[str], answers: Sequence[Mapping[str, Any]]) -> set[str]:
    """Ids that the store gave away, those of the last commit, and those that have a document. `answers`: their gets."""
    unsettled = set(state.outbox)
    return {
        call_id
        for call_id, answer in zip(ids, answers, strict=True)
        if state.row.assigned(call_id) or answer["_id"] in unsettled or _has_document(state, answer)
    }


def owed(session: Session, state: ToolState, answers: Sequence[Mapping[str, Any]]) -> bool:
    """Whether one of the ids is known by the record alone.

    Its commit may be undone yet: a node that has lost touch with the cluster shows it for a moment. Nobody is told that
    a call is there before an acknowledged write has proved it.
    """
    if session.settled.get(state.id) == state.left_by:
        return False
    unsettled = set(state.outbox)
    return any(answer["_id"] in unsettled and not _has_document(state, answer) for answer in answers)


def _has_document(state: ToolState, answer: Mapping[str, Any]) -> bool:
    return bool(answer.get("found")) and answer["_source"]["stem"] == state.row.id_stem
