"""Which documents are the calls that windows have dropped, told by small documents, each for some seqs of a tool.

The document of a dropped call stays as it is, for the log. That a commit had named it stands here, written after the
swap that dropped it; until then the tool's record has it (`dropped`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolmem.store.elastic.cluster import BulkItem
from toolmem.store.elastic.document_ids import call_doc_id, workspace_key
from toolmem.store.elastic.indices import Layout
from toolmem.store.elastic.session import Session
from toolmem.store.elastic.tool_state import Run, ToolState

SEQS = 128  # in one document


def document_of(stem: str, seq: int) -> str:
    """The document that tells of this call."""
    return f"{stem}-dropped-{seq // SEQS}"


def add_items(layout: Layout, state: ToolState) -> list[BulkItem]:
    """To write down what the last commit dropped. Merged by the server with what is there."""
    blocks: dict[str, dict[str, str]] = {}
    for first, last, token in state.dropped:
        for start in range(first - first % SEQS, last + 1, SEQS):
            a, b = max(first, start), min(last, start + SEQS - 1)
            blocks.setdefault(document_of(state.row.id_stem, a), {})[f"{a}-{b}"] = token
    of_tool = {"w": workspace_key(state.workspace), "stem": state.row.id_stem}
    sources = {block: {"doc": {**of_tool, "runs": runs}, "doc_as_upsert": True} for block, runs in blocks.items()}
    index, options = layout.alias("ids"), {"retry_on_conflict": 10}
    return [BulkItem("update", index, block, source, None, options) for block, source in sources.items()]


def told(stem: str, source: Mapping[str, Any] | None) -> dict[int, str]:
    """Documents of dropped calls by seq, as one of these documents names them."""
    runs = [_run(name, token) for name, token in ((source or {}).get("runs") or {}).items()]
    return {seq: call_doc_id(stem, seq, token) for first, last, token in runs for seq in range(first, last + 1)}


def _run(name: str, token: str) -> Run:
    first, _, last = name.partition("-")
    return int(first), int(last), token


async def read(session: Session, places: Iterable[tuple[str, int]]) -> set[str]:
    """The documents of dropped calls, looked for by stem and seq: those near to them are told as well."""
    wanted = {document_of(stem, seq): stem for stem, seq in places}
    found = await session.connection.multi_get([session.wanted("ids", block) for block in wanted])
    sources = zip(wanted.values(), found, strict=True)
    return {name for stem, each in sources for name in told(stem, each.get("_source")).values()}


def delete_items(layout: Layout, places: Sequence[tuple[str, int]]) -> list[BulkItem]:
    """Calls are deleted in the order of their seqs: what told of them goes with the last."""
    last = [document_of(stem, seq) for stem, seq in places if seq % SEQS == SEQS - 1]
    return [BulkItem("delete", layout.alias("ids"), document) for document in last]
