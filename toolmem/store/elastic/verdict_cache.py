"""Verdicts by the key of what was judged, so that the same question is never paid for twice."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from toolmem.models import Verdict
from toolmem.store.codec import storable
from toolmem.store.elastic.connection import Operation
from toolmem.store.elastic.keyed_records import whole
from toolmem.store.elastic.names import is_cut, label, verdict_id, workspace_key
from toolmem.store.elastic.session import Session

logger = logging.getLogger("toolmem.store")


async def read(session: Session, workspace: str, keys: Sequence[str]) -> dict[str, Verdict]:
    """Those that are there. A damaged one is logged and counts as absent: it is judged again."""
    asked = [key for key in dict.fromkeys(keys) if storable(key)]
    if not asked or not storable(workspace):
        return {}
    index, routing = session.layout.alias("verdicts"), workspace_key(workspace)
    wanted = [{"_index": index, "_id": verdict_id(workspace, key), "routing": routing} for key in asked]
    found: dict[str, Verdict] = {}
    for key, answer in zip(asked, await session.connection.multi_get(wanted), strict=True):
        if not answer.get("found"):
            continue
        try:
            found[key] = Verdict.model_validate(json.loads(answer["_source"]["body"])["verdict"])
        except (ValueError, TypeError, KeyError):
            logger.error("the cached verdict %r is damaged and left out", key)
    return found


async def keys(session: Session, workspace: str, after: str, limit: int) -> list[str]:
    """A page of keys, sorted; ordered as labels where they are longer than those show."""
    if limit < 1 or not storable(workspace) or not storable(after):
        return []
    index, routing = session.layout.alias("verdicts"), workspace_key(workspace)
    await session.connection.refresh(index)
    page: dict[str, Any] = {"search_after": [label(after)]} if after else {}
    answer = await session.connection.call(
        lambda es: es.search(
            index=index,
            routing=routing,
            query={"term": {"w": routing}},
            sort=[{"key": "asc"}],
            size=min(limit, 10_000),
            source=False,
            docvalue_fields=["key"],
            **page,
        )
    )
    shown = [hit["fields"]["key"][0] for hit in answer["hits"]["hits"]]
    return [await whole(session, index, "key", key) if is_cut(key) else key for key in shown]


async def write(session: Session, workspace: str, verdicts: Mapping[str, Verdict]) -> None:
    index, routing = session.layout.alias("verdicts"), workspace_key(workspace)
    operations = []
    for key, verdict in verdicts.items():
        body = {"workspace": workspace, "key": key, "verdict": verdict.model_dump(mode="json")}
        source = {
            "w": routing,
            "workspace": label(workspace),
            "key": label(key),
            "body": json.dumps(body, ensure_ascii=False, separators=(",", ":")),
        }
        operations.append(Operation("index", index, verdict_id(workspace, key), source, routing))
    session.connection.require(await session.connection.bulk(operations))
