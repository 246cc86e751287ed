"""The log of calls, over tools and documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolmem.models.calls import ToolCallResult
from toolmem.models.tools import LoggedCall
from toolmem.store.elasticsearch.client import PAGE, Client
from toolmem.store.elasticsearch.tools import Found, Placed
from toolmem.store.storable import decoder


def logged_calls(
    client: Client,
    index: str,
    tools: Sequence[Found],
    conversation: str | None,
    after: int,
    limit: int,
    newest: bool,
) -> list[LoggedCall]:
    """Calls of these tools in the order in which they came.

    `tools` were read before: a call is in an outbox, or was a document before it left it.
    """
    stems = [found.alive.stem for found in tools if found.alive is not None]
    if not stems or limit < 1:
        return []
    filters: list[Any] = [{"terms": {"stem": stems}}, {"range": {"position": {"gt": after}}}]
    if conversation is not None:
        filters.append({"term": {"conversation": conversation}})
    found: dict[str, tuple[int, Placed]] = {}  # the newest version of each, by document
    for hit in _hits(client, index, filters, limit, newest):
        source = hit["_source"]
        placed = Placed(source["body"], source["position"], source.get("conversation", ""))
        found[hit["_id"]] = (hit["_version"], placed)
    for each in tools:
        for entry, text in each.outbox.values():
            fits = entry.position > after and conversation in (None, entry.conversation)
            if text and entry.seq and fits and entry.version > found.get(entry.id, (0,))[0]:
                found[entry.id] = (entry.version, Placed(text, entry.position))
    ordered = sorted((placed for _, placed in found.values()), key=lambda each: each.position)
    read = decoder(ToolCallResult)
    shown = ordered[-limit:] if newest else ordered[:limit]
    return [LoggedCall(each.position, read(each.body)) for each in shown]


def _hits(
    client: Client, index: str, filters: Sequence[Any], limit: int, newest: bool
) -> list[dict[str, Any]]:
    """The first or the last `limit` documents by position."""
    client.refresh(index)
    body: dict[str, Any] = {
        "query": {"bool": {"filter": filters}},
        "sort": [{"position": "desc" if newest else "asc"}],
        "version": True,
    }
    hits: list[dict[str, Any]] = []
    while len(hits) < limit:
        size = min(PAGE, limit - len(hits))
        page = client.search(index=index, size=size, **body)["hits"]["hits"]
        hits += page
        if len(page) < size:
            break
        body["search_after"] = page[-1]["sort"]
    return hits
