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
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolmem.errors import StoreUnavailable
from toolmem.store.elastic import failures

if TYPE_CHECKING:
    from elasticsearch import ApiError, AsyncElasticsearch

BULK_ITEMS = 1000
BULK_CHARACTERS = 8_000_000
PAGE = 1000  # documents of a page of a scan, and of one multi-get
_KEEP_ALIVE = "2m"  # of a point in time between two pages
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0  # seconds

_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
# Of the answer to a bulk: its items say much more than is looked at.
_BULK_ANSWER = "error,status,items.*.status,items.*.error,items.*.get"

Request = Callable[["AsyncElasticsearch"], Awaitable[Any]]
Refusal = tuple[int, Mapping[str, Any]]  # status and cause


@dataclass(frozen=True, slots=True)
class Operation:
    """One item of a bulk. `action`: "index", "delete", or "update" (of nothing: tells whether there is a document)."""

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
        action = _compact({self.action: head})
        return (action if self.source is None else f"{action}\n{_compact(self.source)}").encode()

    @property
    def size(self) -> int:
        body = self.source.get("body") if self.source else None
        return 200 + (len(body) if isinstance(body, str) else 0)


@dataclass(frozen=True, slots=True)
class ItemResult:
    status: int
    error: Mapping[str, Any] | None = None
    found: Mapping[str, Any] | None = None  # the source, where an update asked for it


class Connection:
    """`location`: the hosts without credentials, for messages. `timeout`: seconds for a request, attempts together."""

    def __init__(
        self, client: AsyncElasticsearch, *, location: failures.Location, hosts: int, timeout: float, max_retries: int
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

    async def call(self, request: Request, *, ignore: Sequence[int] = (), deadline: float | None = None) -> Any:
        """The answer; statuses in `ignore` are answers as well. Raises StoreUnavailable or StoreError."""
        from elasticsearch import ApiError, TransportError, UnsupportedProductError

        begun = time.monotonic()
        give_up = begun + self.timeout if deadline is None else deadline
        lost = 0
        refused: ApiError | None = None
        pauses = _pauses()
        while True:
            remaining = max(give_up - time.monotonic(), 0.05)
            client = self._client.options(
                request_timeout=min(remaining, self._attempt_seconds), ignore_status=tuple(ignore)
            )
            try:
                return await request(client)
            except UnsupportedProductError as error:
                raise failures.not_elasticsearch(self.location) from error
            except ApiError as error:
                cause = failures.error_cause(error.body)
                if not failures.may_retry(error.meta.status, cause) or time.monotonic() >= give_up:
                    raise failures.from_status(error, self.location) from error
                refused = error
            except TransportError as error:
                lost += 1
                if refused is not None and time.monotonic() >= give_up:  # the last attempt had no time left
                    raise failures.from_status(refused, self.location) from error
                if lost > self._max_retries or time.monotonic() >= give_up:
                    raise failures.unreachable(error, self.location, time.monotonic() - begun) from error
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
            found += await self._get_page(documents[start : start + PAGE], give_up)
        return found

    async def _get_page(self, documents: Sequence[Mapping[str, Any]], give_up: float) -> list[dict[str, Any]]:
        found: dict[int, dict[str, Any]] = {}
        earlier: Refusal | None = None
        waiting = list(range(len(documents)))
        pauses = _pauses()
        while True:
            asked = [documents[position] for position in waiting]
            with self._reason_kept(earlier, give_up):
                answer = await self.call(lambda es, asked=asked: es.mget(docs=asked), deadline=give_up)  # type: ignore[misc]
            again = []
            for position, each in zip(waiting, answer["docs"], strict=True):
                error = each.get("error")
                if error is None:
                    found[position] = each
                elif failures.is_passing(error) and time.monotonic() < give_up:
                    again.append(position)
                    earlier = failures.status_of(error), error
                else:
                    raise failures.refusal(failures.status_of(error), error, self.location)
            if not again:
                return [found[position] for position in range(len(documents))]
            waiting = again
            await asyncio.sleep(next(pauses))

    async def bulk(self, operations: Sequence[Operation], *, deadline: float | None = None) -> list[ItemResult]:
        """Each item's outcome, in order. What was rejected for the moment is sent again until the deadline.

        A missing document (404 of a delete or an update) is an outcome, not an error.
        """
        give_up = self.deadline() if deadline is None else deadline
        outcomes: list[ItemResult | None] = [None] * len(operations)
        for positions in _chunks(operations):
            await self._bulk_chunk(operations, positions, outcomes, give_up)
        return [outcome for outcome in outcomes if outcome is not None]

    async def _bulk_chunk(
        self, operations: Sequence[Operation], positions: list[int], outcomes: list[ItemResult | None], give_up: float
    ) -> None:
        pauses = _pauses()
        earlier: Refusal | None = None
        while positions:
            lines = [operations[position].lines() for position in positions]
            with self._reason_kept(earlier, give_up):
                answer = await self.call(
                    lambda es, lines=lines: es.bulk(operations=lines, filter_path=_BULK_ANSWER),  # type: ignore[misc]
                    ignore=(413,),
                    deadline=give_up,
                )
            if answer.meta.status == 413:
                if len(positions) == 1:
                    outcomes[positions[0]] = ItemResult(
                        413, {"type": "too_large", "reason": "larger than a request may be"}
                    )
                    return
                half = len(positions) // 2
                await self._bulk_chunk(operations, positions[:half], outcomes, give_up)
                await self._bulk_chunk(operations, positions[half:], outcomes, give_up)
                return
            again = []
            for position, item in zip(positions, answer["items"], strict=True):
                (body,) = item.values()
                error = body.get("error")
                if error and failures.may_retry(body["status"], error) and time.monotonic() < give_up:
                    again.append(position)
                    earlier = body["status"], error
                    continue
                found = body.get("get", {}).get("_source")
                outcomes[position] = ItemResult(body["status"], error if body["status"] != 404 else None, found)
            positions = again
            if positions:
                await asyncio.sleep(next(pauses))

    @contextmanager
    def _reason_kept(self, earlier: Refusal | None, give_up: float) -> Iterator[None]:
        """Where the time is over, the reason is what the server said before, not that it could not say it again."""
        try:
            yield
        except StoreUnavailable:
            if earlier is None or time.monotonic() < give_up:
                raise
            raise failures.refusal(*earlier, self.location) from None

    def require(self, outcomes: Sequence[ItemResult]) -> None:
        """Every item must be done. Raises StoreError that says what the first one said."""
        for outcome in outcomes:
            if outcome.error is not None:
                raise failures.refusal(outcome.status, outcome.error, self.location)

    # -- searching

    async def refresh(self, *indices: str) -> None:
        """Make everything that was acknowledged, by any process, visible to searches."""
        await self.call(lambda es: es.indices.refresh(index=",".join(indices)))

    async def scan(
        self, index: str, query: Mapping[str, Any], *, routing: str | None = None, page: int = PAGE, **wanted: Any
    ) -> AsyncIterator[dict[str, Any]]:
        """Every hit, of one moment, however many. `wanted`: as for a search (`source`, `docvalue_fields`, ...)."""
        first = await self.call(
            lambda es: es.search(
                index=index,
                query=query,
                size=page,
                routing=routing,
                seq_no_primary_term=True,
                allow_partial_search_results=False,  # all of it or an error, whichever shard is missing
                **wanted,
            )
        )
        if len(first["hits"]["hits"]) < page:
            for hit in first["hits"]["hits"]:
                yield hit
            return
        answer = await self.call(lambda es: es.open_point_in_time(index=index, keep_alive=_KEEP_ALIVE, routing=routing))
        moment, after = answer["id"], None
        try:
            while True:
                body: dict[str, Any] = {
                    "pit": {"id": moment, "keep_alive": _KEEP_ALIVE},
                    "query": query,
                    "size": page,
                    "sort": ["_shard_doc"],
                    "track_total_hits": False,
                    "seq_no_primary_term": True,
                    "allow_partial_search_results": False,
                    **wanted,
                }
                if after is not None:
                    body["search_after"] = after
                answer = await self.call(lambda es, body=body: es.search(**body))  # type: ignore[misc]
                moment = answer.get("pit_id", moment)
                hits = answer["hits"]["hits"]
                for hit in hits:
                    yield hit
                if len(hits) < page:
                    return
                after = hits[-1]["sort"]
        finally:
            last = moment
            await self.call(lambda es: es.close_point_in_time(id=last), ignore=(404,))


def _pauses() -> Any:
    """Seconds between attempts: twice as long each time, with jitter, so that writers do not march in step."""
    pause = _FIRST_PAUSE
    while True:
        yield pause * random.uniform(0.5, 1.5)
        pause = min(pause * 2, _LONGEST_PAUSE)


def _chunks(operations: Sequence[Operation]) -> list[list[int]]:
    chunks: list[list[int]] = []
    size = 0
    for position, operation in enumerate(operations):
        if not chunks or len(chunks[-1]) >= BULK_ITEMS or size + operation.size > BULK_CHARACTERS:
            chunks.append([])
            size = 0
        chunks[-1].append(position)
        size += operation.size
    return chunks
