"""Verdicts by the key of what was judged, so that the same question is never paid for twice."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from toolmem.models import Verdict
from toolmem.store.codec import storables
from toolmem.store.decided import read_verdict
from toolmem.store.elastic.cluster import BulkItem, compact
from toolmem.store.elastic.document_ids import label, verdict_id, workspace_key
from toolmem.store.elastic.session import Session


async def read(session: Session, workspace: str, keys: Sequence[str]) -> dict[str, Verdict]:
    """Those that are there. A damaged one is logged and counts as absent: it is judged again."""
    asked = storables(keys)
    wanted = [session.wanted("verdicts", verdict_id(workspace, key), workspace) for key in asked]
    found: dict[str, Verdict] = {}
    for key, answer in zip(asked, await session.connection.multi_get(wanted), strict=True):
        if answer.get("found"):
            read_verdict(found, key, _told(answer["_source"]))
    return found


def _told(source: Mapping[str, Any]) -> Any:
    """None where it is damaged."""
    try:
        return json.loads(source["body"])["verdict"]
    except (ValueError, TypeError, KeyError):
        return None


async def keys(session: Session, workspace: str, after: str = "", limit: int = 1000) -> list[str]:
    """A page of keys, sorted; ordered as labels where they are longer than those show."""
    if limit < 1:
        return []
    index, routing = session.layout.alias("verdicts"), workspace_key(workspace)
    await session.connection.refresh(index)
    page: dict[str, Any] = {"search_after": [label(after)]} if after else {}
    answer = await session.connection.search(
        index=index,
        routing=routing,
        query={"term": {"w": routing}},
        sort=[{"key": "asc"}],
        size=min(limit, 10_000),
        source=False,
        docvalue_fields=["key"],
        **page,
    )
    return [await session.whole("verdicts", "key", hit["fields"]["key"][0]) for hit in answer["hits"]["hits"]]


async def write(session: Session, workspace: str, verdicts: Mapping[str, Verdict]) -> None:
    index, routing = session.layout.alias("verdicts"), workspace_key(workspace)
    items = []
    for key, verdict in verdicts.items():
        body = {"workspace": workspace, "key": key, "verdict": verdict.model_dump(mode="json")}
        source = {"w": routing, "workspace": label(workspace), "key": label(key), "body": compact(body)}
        items.append(BulkItem("index", index, verdict_id(workspace, key), source, routing))
    session.connection.require(await session.connection.bulk(items))
