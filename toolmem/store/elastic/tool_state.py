"""The document of a tool: its record, which documents its calls are, and what the last commit left to be done.

A commit replaces it by compare-and-swap. Nobody sees a call before that: the record names each visible call's document
by `runs` (ranges of seqs written under one token), and what it does not name does not exist.

* `outbox`: ids of the calls of the last commit. They become id documents after its swap, never before, so that a
  writer that dies leaves no id behind that would make a later retry lose the call.
* `leaving`: call documents that the last commit made superfluous, deleted after its swap.
* `dropped`: those of calls that the last commit dropped from the window, written down as such after its swap. All
  three are left to the next commit where a writer dies in between (see `leftovers`).
* `recent`: names of the last commits, by which a writer whose answer was lost recognizes its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolmem.errors import StoreError
from toolmem.models import LifetimeCounters
from toolmem.store.codec import GuidanceCache
from toolmem.store.elastic import search_fields
from toolmem.store.elastic.cluster import compact
from toolmem.store.elastic.document_ids import call_doc_id, label, tool_id, workspace_key
from toolmem.store.elastic.search_fields import Searchable
from toolmem.store.semantics import MAX_SEQ, ToolRow

RECENT_COMMITS = 24
WITHOUT_OUTBOX = {"excludes": ["outbox"]}

Run = tuple[int, int, str]  # first seq, last seq, token


@dataclass(slots=True)
class ToolState:
    workspace: str
    row: ToolRow
    runs: list[Run] = field(default_factory=list)
    leaving: list[Run] = field(default_factory=list)
    dropped: list[Run] = field(default_factory=list)
    recent: list[str] = field(default_factory=list)
    outbox: list[str] = field(default_factory=list)  # ids of id documents
    left_by: str = ""  # the commit that set `leaving`, `dropped` and `outbox`
    guidance: str | None = None  # JSON
    document: Searchable | None = None
    document_time: int = 0  # when the document was last written, microseconds since 1970
    position: tuple[int, int] | None = None  # seq_no and primary_term as read; None: not stored yet

    @property
    def id(self) -> str:
        return tool_id(self.workspace, self.row.name)

    def read_guidance(self, cache: GuidanceCache) -> ToolRow:
        """The row with its guidance. By the text: a node that lags behind may show what was never to stand."""
        self.row.guidance = cache.get(self.guidance, self.row.name, lambda: self.guidance)
        return self.row

    def kept_ids(self) -> dict[int, str]:
        """Documents of the kept calls, by seq."""
        return self.call_ids(self.row.first_seq, self.row.last_seq)

    def call_ids(self, first: int, last: int) -> dict[int, str]:
        """Documents of the calls between two seqs, both included."""
        return self._documents(clip_runs(self.runs, first, last))

    def dropped_ids(self, first: int = 0, last: int = MAX_SEQ) -> dict[int, str]:
        """Documents of dropped calls that are perhaps not written down yet, by seq."""
        return self._documents(clip_runs(self.dropped, first, last))

    def _documents(self, runs: Sequence[Run]) -> dict[int, str]:
        return {seq: call_doc_id(self.row.id_stem, seq, token) for a, b, token in runs for seq in range(a, b + 1)}


# -- runs


def clip_runs(runs: Sequence[Run], first: int, last: int) -> list[Run]:
    """What of the runs lies between two seqs, both included."""
    return [(max(a, first), min(b, last), token) for a, b, token in runs if b >= first and a <= last]


def put_run(runs: Sequence[Run], first: int, last: int, token: str) -> list[Run]:
    """The runs with these seqs under this token; neighbours of one token are joined."""
    if last < first:
        return list(runs)
    below, above = clip_runs(runs, 0, first - 1), clip_runs(runs, last + 1, 2**62)
    joined: list[Run] = []
    for run in (*below, (first, last, token), *above):
        if joined and joined[-1][2] == run[2] and joined[-1][1] + 1 == run[0]:
            joined[-1] = (joined[-1][0], run[1], run[2])
        else:
            joined.append(run)
    return joined


# -- as a document


def source_of(state: ToolState) -> dict[str, Any]:
    row = state.row
    body = {
        "workspace": state.workspace,
        "name": row.name,
        "memory_id": row.memory_id,
        "stem": row.id_stem,
        "version": row.version,
        "guidance_version": row.guidance_version,
        "seqs": [row.first_seq, row.last_seq],
        "covered": row.covered,
        "unjudged": row.unjudged,
        "counters": row.counters.model_dump(mode="json"),
        "times": [row.time_created, row.time_modified],
        "guidance": state.guidance,
        "text": None if state.document is None else state.document.text,
        "document_time": state.document_time,
        "runs": state.runs,
        "leaving": state.leaving,
        "dropped": state.dropped,
        "recent": state.recent,
        "left_by": state.left_by,
    }
    return {
        "w": workspace_key(state.workspace),
        "workspace": label(state.workspace),
        "name": label(row.name),
        "memory_id": label(row.memory_id),
        "kept": row.kept,
        "body": compact(body),
        "outbox": json.dumps(state.outbox),
        # Filters ask when the guidance changed, not when a call came.
        **search_fields.fields(state.document, state.document_time),
    }


def read_state(found: Mapping[str, Any]) -> ToolState:
    """From a document as `get`, `mget` and searches answer it. Raises StoreError where it is damaged."""
    source = found["_source"]
    try:
        body = json.loads(source["body"])
        row = ToolRow(
            name=body["name"],
            memory_id=body["memory_id"],
            id_stem=body["stem"],
            version=body["version"],
            guidance_version=body["guidance_version"],
            first_seq=body["seqs"][0],
            last_seq=body["seqs"][1],
            covered=[(first, last) for first, last in body["covered"]],
            unjudged=[(first, last) for first, last in body["unjudged"]],
            counters=LifetimeCounters.model_validate(body["counters"]),
            time_created=body["times"][0],
            time_modified=body["times"][1],
        )
        return ToolState(
            workspace=body["workspace"],
            row=row,
            runs=[(first, last, token) for first, last, token in body["runs"]],
            leaving=[(first, last, token) for first, last, token in body["leaving"]],
            dropped=[(first, last, token) for first, last, token in body["dropped"]],
            recent=body["recent"],
            left_by=body["left_by"],
            outbox=json.loads(source["outbox"]) if "outbox" in source else [],
            guidance=body["guidance"],
            document=search_fields.read(source, body["text"]),
            document_time=body["document_time"],
            position=(found["_seq_no"], found["_primary_term"]),
        )
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise StoreError(f"the document {found.get('_id')} of a tool is damaged: {type(error).__name__}") from error
