"""What a commit leaves to be done once it stands: call documents to delete, ids to make known.

Only an acknowledged swap of one's own proves that a record will stay. What is read may come from a node that has lost
touch with the cluster, and may be undone. So nothing is deleted and no id is made known on the strength of a read: a
commit carries over what its predecessor left, unless that is seen to be done, and does all of it after its own swap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolmem.store.elastic.connection import ItemResult, Operation
from toolmem.store.elastic.indices import Layout
from toolmem.store.elastic.names import call_doc_id, workspace_key
from toolmem.store.elastic.session import Session
from toolmem.store.elastic.tool_state import Run, ToolState

_LOOK: dict[str, Any] = {"doc": {}}  # an update of nothing: writes nothing, and tells whether there is a document


@dataclass(slots=True)
class Leftovers:
    """Of an earlier commit, as a later one finds them in the record."""

    stem: str
    calls: list[tuple[int, str]]  # seq and token of call documents to delete
    ids: list[str]  # id documents to write

    def looks(self, layout: Layout) -> list[Operation]:
        """To be sent with the bulk of the later commit, on its way to its own swap."""
        calls = [
            Operation("update", layout.alias("calls"), call_doc_id(self.stem, seq, token), _LOOK)
            for seq, token in self.calls
        ]
        return [*calls, *(look_for_id(layout, document) for document in self.ids)]

    def keep_undone(self, seen: Sequence[ItemResult]) -> None:
        """`seen`: the answers to `looks`. What is done already is not carried any further."""
        calls, ids = seen[: len(self.calls)], seen[len(self.calls) :]
        self.calls = [each for each, result in zip(self.calls, calls, strict=True) if result.status != 404]
        self.ids = [each for each, result in zip(self.ids, ids, strict=True) if not names_tool(result, self.stem)]

    def with_more(self, leaving: Sequence[Run], outbox: Sequence[str]) -> tuple[list[Run], list[str]]:
        """As the record of the later commit holds them."""
        return [*((seq, seq, token) for seq, token in self.calls), *leaving], [*self.ids, *outbox]


def found_in(session: Session, state: ToolState) -> Leftovers:
    """Nothing where this session has done after its own swap what the last commit left."""
    if session.settled.get(state.id) == state.left_by:
        return Leftovers(state.row.id_stem, [], [])
    calls = [(seq, token) for first, last, token in state.leaving for seq in range(first, last + 1)]
    return Leftovers(state.row.id_stem, calls, list(state.outbox))


def settling(layout: Layout, state: ToolState) -> list[Operation]:
    """What the commit that made this state does once its swap was acknowledged."""
    stem = state.row.id_stem
    deletes = [
        Operation("delete", layout.alias("calls"), call_doc_id(stem, seq, token))
        for first, last, token in state.leaving
        for seq in range(first, last + 1)
    ]
    source = {"w": workspace_key(state.workspace), "stem": stem}
    return [*deletes, *(Operation("index", layout.alias("ids"), document, source) for document in state.outbox)]


def look_for_id(layout: Layout, document: str) -> Operation:
    return Operation("update", layout.alias("ids"), document, _LOOK, None, {"_source": True})


def names_tool(result: ItemResult, stem: str) -> bool:
    """Whether the id document that was looked for is there, and of this tool as it lives now."""
    return result.found is not None and result.found.get("stem") == stem
