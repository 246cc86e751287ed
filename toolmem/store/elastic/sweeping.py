"""Deletes what dead writers left behind: call documents that no record names, which nobody ever sees.

A writer leaves its name in `meta` before its first write and takes it away when it closes. A name whose owner has not
been heard of for an hour belongs to a dead one: its documents are compared with the records, once, by whoever opens
the store next.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from toolmem.errors import StoreError
from toolmem.store.elastic import dropped_calls
from toolmem.store.elastic.call_documents import delete_items
from toolmem.store.elastic.cluster import pages
from toolmem.store.elastic.session import Session
from toolmem.store.elastic.tool_state import WITHOUT_OUTBOX, read_state

logger = logging.getLogger("toolmem.store")

KIND = "writer"
SAY_ALIVE_SECONDS = 900.0
SILENT_SECONDS = 3600.0  # also how old a document must be: whoever wrote it has given up long since


async def register(session: Session) -> None:
    """Say that this writer lives, at most every quarter of an hour."""
    now = time.time()
    if now - session.registered < SAY_ALIVE_SECONDS:
        return
    session.registered = now
    await session.connection.call(
        lambda es: es.index(
            index=session.layout.alias("meta"),
            id=f"{KIND}-{session.writer}",
            document={"kind": KIND, "seen": int(now), "body": session.writer},
        )
    )


async def sign_off(session: Session) -> None:
    """An orderly end: nothing was left behind. Nothing happens where the server has gone."""
    if not session.registered or session.littered:
        return
    try:
        await session.connection.call(
            lambda es: es.delete(index=session.layout.alias("meta"), id=f"{KIND}-{session.writer}"), ignore=(404,)
        )
    except StoreError as error:
        logger.debug("the writer %s could not sign off: %s", session.writer, error)


async def sweep(session: Session, silent_seconds: float = SILENT_SECONDS) -> int:
    """Delete what dead writers left; answers how many documents."""
    meta = session.layout.alias("meta")
    before = int(time.time() - silent_seconds)
    await session.connection.refresh(meta)
    query = {"bool": {"filter": [{"term": {"kind": KIND}}, {"range": {"seen": {"lte": before}}}]}}
    silent = [hit async for hit in session.connection.scan(meta, query)]
    swept = 0
    for hit in silent:
        swept += await _sweep_writer(session, hit["_source"]["body"], before)
        await session.connection.call(lambda es, name=hit["_id"]: es.delete(index=meta, id=name), ignore=(404,))  # type: ignore[misc]
    if swept:
        logger.info("%d documents that %d dead writers left behind were deleted", swept, len(silent))
    return swept


async def _sweep_writer(session: Session, writer: str, before: int) -> int:
    calls = session.layout.alias("calls")
    await session.connection.refresh(calls)
    query = {"bool": {"filter": [{"term": {"writer": writer}}, {"range": {"written": {"lte": before}}}]}}
    hits = session.connection.scan(calls, query, source=False, docvalue_fields=["tool", "w", "stem", "seq"])
    return sum([await _delete_unnamed(session, page) async for page in pages(hits)])


async def _delete_unnamed(session: Session, hits: list[dict[str, Any]]) -> int:
    places = {hit["fields"]["tool"][0]: hit["fields"]["w"][0] for hit in hits}
    tools = session.layout.alias("tools")
    found = await session.connection.multi_get(
        [{"_index": tools, "_id": tool, "routing": w, "_source": WITHOUT_OUTBOX} for tool, w in places.items()]
    )
    states = {each["_id"]: read_state(each) for each in found if each.get("found")}
    unnamed = []
    for hit in hits:
        state, seq = states.get(hit["fields"]["tool"][0]), hit["fields"]["seq"][0]
        named = () if state is None else (state.call_ids(seq, seq).get(seq), state.dropped_ids(seq, seq).get(seq))
        if hit["_id"] not in named:
            unnamed.append(hit["_id"])
    # What a window dropped before the records were read is written down by now.
    dropped = await dropped_calls.read(session, ((hit["fields"]["stem"][0], hit["fields"]["seq"][0]) for hit in hits))
    unnamed = [document for document in unnamed if document not in dropped]
    session.connection.require(await session.connection.bulk(delete_items(session.layout, unnamed)))
    return len(unnamed)
