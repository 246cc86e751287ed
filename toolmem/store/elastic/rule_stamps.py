"""The stamp of a workspace's rules: one document that is read beside other records, and tells whether rules changed.

    write   [mark the stamp as pending, write the rule] in one bulk ──acknowledged──> a new token, the mark taken away
    read    [stamp, records] in one multi-get: the token; while a mark is pending, a stamp that nobody else ever gets

Stamp and rules are on one shard, which carries out the items of a bulk in their order, so that no rule is ever there
without the mark before it. The new token comes only when every copy of the shard has the rule. A writer that dies in
between leaves its mark: nobody can remember anything by the stamps of that time. Once the mark is so old that its
write cannot come any more, a reader gives the new token.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

from toolmem.errors import StoreError
from toolmem.store.elastic.cluster import BulkItem, ItemResult
from toolmem.store.elastic.document_ids import random_name, workspace_key
from toolmem.store.elastic.session import Session

logger = logging.getLogger("toolmem.store")

_NO_RULES_YET = "new"  # nothing was ever written under stamps
_MOST_SETTLED = 24  # marks taken away that the document may still name
_GRACE = 60.0  # seconds beside twice the writer's timeout, for clocks that differ


def is_rule(namespace: str, key: str) -> bool:
    """Whether a record is one of those that the stamp speaks of."""
    return namespace.startswith("tool-") and key.startswith("rule/")


def _document(workspace: str) -> str:
    return f"rules-{workspace_key(workspace)}"


# -- writing


async def write(
    session: Session, workspace: str, items: Sequence[BulkItem], deadline: float | None = None
) -> list[ItemResult]:
    """Carry out these writes to the workspace's records; no stamp from before stands for what is there afterwards."""
    mark = random_name(8)
    until = time.time() + 2 * session.connection.timeout + _GRACE
    marking = _change(session, workspace, {"pending": {mark: until}})
    marked, *results = await session.connection.bulk([marking, *items], deadline=deadline)
    settled = await _settled(session, workspace, [mark])
    if marked.error is not None and not settled:
        session.connection.require([marked])
    return results


async def _settled(session: Session, workspace: str, marks: Sequence[str]) -> bool:
    """Give a new token and take these marks away. Where that fails they stay, until a reader finds them too old."""
    change = {"token": random_name(16), "pending": dict.fromkeys(marks)}
    try:
        (result,) = await session.connection.bulk([_change(session, workspace, change)])
        session.connection.require([result])
        if result.found is not None and len(result.found["body"]["pending"]) > _MOST_SETTLED:
            await _forget_settled(session, workspace)
    except StoreError as error:
        logger.warning("the stamp of the rules of workspace %r stays pending: %s", workspace, error)
        return False
    return True


def _change(session: Session, workspace: str, body: Mapping[str, Any]) -> BulkItem:
    """Merged into what is there by the server, so that writers never wait for each other."""
    source = {"doc": {"body": body}, "doc_as_upsert": True}
    options = {"retry_on_conflict": 50, "_source": True}
    place = session.layout.alias("records"), _document(workspace)
    return BulkItem("update", *place, source, workspace_key(workspace), options)


async def _forget_settled(session: Session, workspace: str) -> None:
    """A merge can only empty a mark. Where somebody changes the stamp at the same time, the next one does this."""
    (found,) = await session.connection.multi_get([wanted(session, workspace)])
    body = {**found["_source"]["body"], "pending": _pending(found["_source"])}
    position, give_up = (found["_seq_no"], found["_primary_term"]), session.connection.deadline()
    await session.swap("records", _document(workspace), workspace, {"body": body}, position, give_up)


# -- reading


def wanted(session: Session, workspace: str) -> dict[str, Any]:
    """The stamp's document, as a multi-get names it."""
    return session.wanted("records", _document(workspace), workspace, ["body"])


async def told(session: Session, workspace: str, found: Mapping[str, Any]) -> str:
    """The stamp, from the answer to `wanted`."""
    source = found.get("_source")
    now = time.time()
    marks = {} if source is None else _pending(source)
    old = [mark for mark, until in marks.items() if until <= now]
    if old and len(old) == len(marks):
        await _settled(session, workspace, old)
    if marks:
        return f"pending-{random_name(16)}"
    return str(source["body"]["token"]) if source else _NO_RULES_YET


def _pending(source: Mapping[str, Any]) -> dict[str, float]:
    """The marks that stand, each with the time when it is too old."""
    return {mark: until for mark, until in source["body"]["pending"].items() if until is not None}
