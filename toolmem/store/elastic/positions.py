"""Places in the logs of a workspace: numbers that grow, given by each writer for itself.

A position is a time and the writer's own mark, so that two writers never give the same one. It is greater than any that
was acknowledged before, whatever the clocks say: the highest one given in a workspace is the version of a document,
which each write raises (and never lowers) and each writer reads with what else it has to read. Two writes at once may
be seen in another order than they are done in.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from toolmem.store.elastic.cluster import BulkItem
from toolmem.store.elastic.document_ids import workspace_key
from toolmem.store.elastic.session import Session

MARK_BITS = 12
BEGIN = 1_577_836_800_000_000  # 2020-01-01 in microseconds since 1970: what is left of 63 bits lasts until 2091


def wanted(session: Session, kind: str, workspace: str) -> dict[str, Any]:
    """As a multi-get names it: the document whose version is the highest position in the log of this index."""
    return session.wanted(kind, _document(workspace), workspace, False)


def given(session: Session, found: Mapping[str, Any], count: int) -> list[int]:
    """The next positions. `found`: the answer to `wanted`."""
    first = max(time.time_ns() // 1000 - BEGIN, (found.get("_version", 0) >> MARK_BITS) + 1, session.last_moment + 1)
    session.last_moment = first + count - 1
    return [moment << MARK_BITS | session.mark for moment in range(first, first + count)]


def raised(session: Session, kind: str, workspace: str, position: int) -> BulkItem:
    """Say that this one is given. Answered by 409 where a higher one is."""
    options = {"version": position, "version_type": "external"}
    place = session.layout.alias(kind), _document(workspace)
    return BulkItem("index", *place, {}, workspace_key(workspace), options)


def seconds(position: int) -> float:
    """About when it was given, since 1970."""
    return ((position >> MARK_BITS) + BEGIN) / 1e6


def _document(workspace: str) -> str:
    return f"log-{workspace_key(workspace)}"
