"""Places in the logs of a workspace: numbers that grow, given by each writer for itself.

A position is greater than any that was acknowledged before, whatever the clocks say: the highest one given in a
workspace is the version of a document, which each write raises (and never lowers) and each writer reads with what else
it has to read. Its last bits are the writer's own, so that two writers at once do not give the same one; these two may
be seen in another order than they are done in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolmem.store.elastic.cluster import BulkItem
from toolmem.store.elastic.document_ids import workspace_key
from toolmem.store.elastic.session import Session

MARK_BITS = 20  # 33 bits are left, so that every position is exact in JavaScript as well


def wanted(session: Session, kind: str, workspace: str) -> dict[str, Any]:
    """As a multi-get names it: the document whose version is the highest position in the log of this kind."""
    return session.wanted("meta", _document(kind, workspace), None, False)


def given(session: Session, found: Mapping[str, Any], count: int) -> list[int]:
    """The next positions. `found`: the answer to `wanted`."""
    first = max(found.get("_version", 0) >> MARK_BITS, session.last_place) + 1
    session.last_place = first + count - 1
    return [place << MARK_BITS | session.mark for place in range(first, first + count)]


def raised(session: Session, kind: str, workspace: str, position: int) -> BulkItem:
    """Say that this one is given. Answered by 409 where a higher one is."""
    options = {"version": position, "version_type": "external"}
    place = session.layout.alias("meta"), _document(kind, workspace)
    return BulkItem("index", *place, {"kind": "log"}, None, options)


def _document(kind: str, workspace: str) -> str:
    return f"{kind}-{workspace_key(workspace)}"
