"""One client on one event loop: requests that are tried again where that helps, bulks looked at item by item, scans.

The client's own retries are off: they know no pause and no deadline. Every request of the store may be sent twice
without harm: documents have ids of their own, and a compare-and-swap that was applied the first time is recognized.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from toolmem.errors import StoreUnavailable
from toolmem.store.elastic import server_errors

if TYPE_CHECKING:
    from elasticsearch import AsyncElasticsearch

BULK_ITEMS = 1000
BULK_CHARACTERS = 8_000_000
PAGE = 1000  # documents of a page of a scan, and of one multi-get
_KEEP_ALIVE = "2m"  # of a point in time between two pages
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0  # seconds

compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
# Of the answer to a bulk: its items say much more than is looked at.
_BULK_ANSWER = "error,status,items.*.status,items.*.error,items.*.get"

T = TypeVar("T")
Send = Callable[[Sequence[Any], float], Awaitable[Sequence[dict[str, Any]]]]


@dataclass(frozen=True, slots=True)
class BulkItem:
    """`action`: "index", "delete", or "update" (of nothing: tells whether there is a document)."""

    action: str
    index: str
    id: str
    source: Mapping[str, Any] | None = None
    routing: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def lines(self) -> bytes:
        """As it is sent. Encoded here: the client's own way takes twice as long per document."""
        head: dict[str, Any] = {"_index": self.index, "_id": self.id, **self.options}
        if self.routing is not None:
            head["routing"] = self.routing
        action = compact({self.action: head})
        return (action if self.source is None else f"{action}\n{compact(self.source)}").encode()

    @property
    def size(self) -> int:
        body = self.source.get("body") if self.source else None
        return 200 + (len(body) if isinstance(body, str) else 0)


@dataclass(frozen=True, slots=True)
class ItemResult:
    status: int
    error: Mapping[str, Any] | None = None  # a missing document (404 of a delete or an update) is none
    found: Mapping[str, Any] | None = None  # the source, where an update asked for it


class Cluster:
    """`location`: the hosts without credentials, for messages. `timeout`: seconds for a request, attempts together."""

    def __init__(
        self,
        client: AsyncElasticsearch,
        *,
        location: server_errors.Location,
        hosts: int,
        timeout: float,
        max_retries: int,
    ) -> None:
        self._client = client
        self.location = location
        self.timeout = timeout
        self._max_retries = max_retries
        # One node that hangs must leave time for another.
        self._attempt_seconds = timeout / min(hosts, max_retries + 1)

    async def close(self) -> None:
        await self._client.close()

    def deadline(self) -> float:
        return time.monotonic() + self.timeout

    async def call(
        self,
        request: Callable[[AsyncElasticsearch], Awaitable[Any]],
        *,
        ignore: Sequence[int] = (),
        deadline: float | None = None,
    ) -> Any:
        """The answer; statuses in `ignore` are answers as well. Raises StoreUnavailable or StoreError."""
        from elasticsearch import ApiError, TransportError, UnsupportedProductError

        begun = time.monotonic()
        give_up = begun + self.timeout if deadline is None else deadline
        lost = 0
        refused: tuple[int, Mapping[str, Any]] | None = None
        pauses = _pauses()
        while True:
            remaining = max(give_up - time.monotonic(), 0.05)
            client = self._client.options(
                request_timeout=min(remaining, self._attempt_seconds), ignore_status=tuple(ignore)
            )
            try:
                return await request(client)
            except UnsupportedProductError as error:
                raise server_errors.not_elasticsearch(self.location) from error
            except ApiError as error:
                cause = server_errors.error_cause(error.body)
                if not server_errors.may_retry(error.meta.status, cause) or time.monotonic() >= give_up:
                    raise server_errors.refusal(error.meta.status, cause, self.location) from error
                refused = error.meta.status, cause
            except TransportError as error:
                lost += 1
                if refused is not None and time.monotonic() >= give_up:  # the last attempt had no time left
                    raise server_errors.refusal(*refused, self.location) from error
                if lost > self._max_retries or time.monotonic() >= give_up:
                    raise server_errors.unreachable(error, self.location, time.monotonic() - begun) from error
            await asyncio.sleep(min(next(pauses), max(give_up - time.monotonic(), 0)))

    # -- many documents at once

    async def multi_get(
        self, documents: Sequence[Mapping[str, Any]], *, deadline: float | None = None
    ) -> list[dict[str, Any]]:
        """Documents as `mget` names them (`_index`, `_id`, `routing`, `_source`), in the order asked; realtime.

        A document whose shard is not there for the moment (the index has just been made, a node has gone) is asked for
        again until the deadline.
        """
        give_up = self.deadline() if deadline is None else deadline
        found: list[dict[str, Any]] = []
        for start in range(0, len(documents), PAGE):
            found += await self._answers(documents[start : start + PAGE], self._get, server_errors.is_passing, give_up)
        for each in found:
            if "error" in each:
                raise server_errors.refusal(server_errors.status_of(each), each["error"], self.location)
        return found

    async def _get(self, documents: Sequence[Any], give_up: float) -> Sequence[dict[str, Any]]:
        answer = await self.call(lambda es: es.mget(docs=documents), deadline=give_up)
        found: list[dict[str, Any]] = answer["docs"]
        return found

    async def bulk(self, items: Sequence[BulkItem], *, deadline: float | None = None) -> list[ItemResult]:
        """Each item's outcome, in order. What was rejected for the moment is sent again until the deadline."""
        give_up = self.deadline() if deadline is None else deadline
        results = []
        for chunk in _chunks(items):
            for each in await self._answers(chunk, self._send, server_errors.may_retry_item, give_up):
                error = each.get("error") if each["status"] != 404 else None
                results.append(ItemResult(each["status"], error, each.get("get", {}).get("_source")))
        return results

    async def _send(self, items: Sequence[BulkItem], give_up: float) -> Sequence[dict[str, Any]]:
        """A bulk that is too large for a request is sent in halves."""
        lines = [item.lines() for item in items]
        answer = await self.call(
            lambda es: es.bulk(operations=lines, filter_path=_BULK_ANSWER), ignore=(413,), deadline=give_up
        )
        if answer.meta.status != 413:
            return [body for item in answer["items"] for body in item.values()]
        if len(items) == 1:
            return [{"status": 413, "error": {"type": "too_large", "reason": "larger than a request may be"}}]
        half = len(items) // 2
        return [*await self._send(items[:half], give_up), *await self._send(items[half:], give_up)]

    async def _answers(
        self, items: Sequence[Any], send: Send, may_retry: Callable[[dict[str, Any]], bool], give_up: float
    ) -> list[dict[str, Any]]:
        """The answer to each item, in order; what is refused for the moment is sent again until the deadline."""
        answers: dict[int, dict[str, Any]] = {}
        waiting = list(range(len(items)))
        refused: dict[str, Any] | None = None
        pauses = _pauses()
        while waiting:
            try:
                sent = await send([items[position] for position in waiting], give_up)
            except StoreUnavailable:
                if refused is None or time.monotonic() < give_up:
                    raise
                # The reason is what the server said before, not that it had no time to say it again.
                raise server_errors.refusal(server_errors.status_of(refused), refused["error"], self.location) from None
            answers.update(zip(waiting, sent, strict=True))
            in_time = time.monotonic() < give_up
            waiting = [position for position in waiting if in_time and may_retry(answers[position])]
            if waiting:
                refused = answers[waiting[-1]]
                await asyncio.sleep(next(pauses))
        return [answers[position] for position in range(len(items))]

    def require(self, outcomes: Sequence[ItemResult]) -> None:
        """Every item must be done. Raises StoreError that says what the first one said."""
        for outcome in outcomes:
            if outcome.error is not None:
                raise server_errors.refusal(outcome.status, outcome.error, self.location)

    # -- searching

    async def refresh(self, *indices: str) -> None:
        """Make everything that was acknowledged, by any process, visible to searches."""
        await self.call(lambda es: es.indices.refresh(index=",".join(indices)))

    async def search(self, **body: Any) -> Any:
        """All of it or an error, whichever shard is missing."""
        return await self.call(lambda es: es.search(allow_partial_search_results=False, **body))

    async def scan(
        self, index: str, query: Mapping[str, Any], *, routing: str | None = None, page: int = PAGE, **wanted: Any
    ) -> AsyncIterator[dict[str, Any]]:
        """Every hit, of one moment, however many. `wanted`: as for a search (`source`, `docvalue_fields`, ...)."""
        body: dict[str, Any] = {"query": query, "size": page, "seq_no_primary_term": True, **wanted}
        answer = await self.search(index=index, routing=routing, **body)
        if len(answer["hits"]["hits"]) < page:
            for hit in answer["hits"]["hits"]:
                yield hit
            return
        answer = await self.call(lambda es: es.open_point_in_time(index=index, keep_alive=_KEEP_ALIVE, routing=routing))
        moment = answer["id"]
        body |= {"sort": ["_shard_doc"], "track_total_hits": False}
        try:
            while True:
                answer = await self.search(pit={"id": moment, "keep_alive": _KEEP_ALIVE}, **body)
                moment = answer.get("pit_id", moment)
                hits = answer["hits"]["hits"]
                for hit in hits:
                    yield hit
                if len(hits) < page:
                    return
                body["search_after"] = hits[-1]["sort"]
        finally:
            last = moment
            await self.call(lambda es: es.close_point_in_time(id=last), ignore=(404,))


async def pages(hits: AsyncIterator[T], size: int = PAGE) -> AsyncIterator[list[T]]:
    """The hits, so many at once."""
    page: list[T] = []
    async for hit in hits:
        page.append(hit)
        if len(page) == size:
            yield page
            page = []
    if page:
        yield page


def _pauses() -> Iterator[float]:
    """Seconds between attempts: twice as long each time, with jitter, so that writers do not march in step."""
    pause = _FIRST_PAUSE
    while True:
        yield pause * random.uniform(0.5, 1.5)
        pause = min(pause * 2, _LONGEST_PAUSE)


def _chunks(items: Sequence[BulkItem]) -> list[list[BulkItem]]:
    chunks: list[list[BulkItem]] = []
    size = 0
    for item in items:
        if not chunks or len(chunks[-1]) >= BULK_ITEMS or size + item.size > BULK_CHARACTERS:
            chunks.append([])
            size = 0
        chunks[-1].append(item)
        size += item.size
    return chunks
