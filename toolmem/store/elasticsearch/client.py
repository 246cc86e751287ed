"""Requests to Elasticsearch, with retries of whole requests and of single items.

A request may be sent twice without harm: a writer whose reply was lost finds its own name in the
document. The client library's own retries are off, because they have no pause and no deadline.
"""

from __future__ import annotations

import os
import random
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from copy import copy
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from toolmem.errors import StoreClosed, StoreError, StoreUnavailable

if TYPE_CHECKING:
    from elasticsearch import Elasticsearch

PAGE = 1000  # documents of one request
MAX_VALUES = 65_000  # the server's own limit is 65,536
BULK_BYTES = 8_000_000
CONTACT_SECONDS = 3.0  # after which a server that gave no first answer is out of reach
KEEP_ALIVE = "1m"  # how long the server keeps a scan open between two pages
MAX_CONFLICT_PAUSE = 0.1  # seconds; a longer pause loses every race against busy writers
_BULK_ANSWER = "items.*.status,items.*.error,items.*._seq_no,items.*._primary_term"
_BUSY = (429, 502, 503, 504)
# In the errors of a node that lost the cluster, and of a shard that is about to move.
_MOVING = re.compile(
    r"node_disconnected|node_not_connected|node_closed|index_shard_closed"
    r"|shard_not_in_primary_mode|no_longer_primary_shard|receive_timeout_transport"
    r"|send_request_transport|already_closed|no_shard_available_action|unavailable_shards"
    r"|illegal_index_shard_state|shard_not_found|primary term|es_rejected_execution"
    r"|circuit_breaking"
)
_encode = msgspec.json.Encoder().encode

Revision = tuple[int, int]  # _seq_no and _primary_term of a document


class Doc(Struct):
    """A document that was read, with its revision and version at that moment."""

    id: str
    source: dict[str, Any]
    revision: Revision
    version: int


class Write(Struct):
    """A document to write or delete, and the condition under which the server does it."""

    index: str
    id: str
    source: Any  # None: delete it
    version: int | None = None  # external: written unless a newer one is there
    revision: Revision | None = None
    is_new: bool = False  # written only where there is no document yet

    def lines(self) -> bytes:
        """Return the lines for this write in a bulk request."""
        head: dict[str, Any] = {"_index": self.index, "_id": self.id}
        if self.version is not None:
            head |= {"version": self.version, "version_type": "external_gte"}
        if self.revision is not None:
            head |= {"if_seq_no": self.revision[0], "if_primary_term": self.revision[1]}
        if self.source is None:
            return _encode({"delete": head})
        action = "create" if self.is_new else "index"
        return _encode({action: head}) + b"\n" + _encode(self.source)


class Client:
    """Sends requests, repeated for up to `timeout` seconds. `location`: the hosts, for messages."""

    def __init__(
        self, make: Callable[[], Elasticsearch], location: str, timeout: float, pause: float = 0.05
    ) -> None:
        self.location = location
        self._make = make
        self._es: Elasticsearch | None = None
        self.prepare: Callable[[], None] = lambda: None  # called before the first request
        self._timeout = timeout
        self._pause = pause  # seconds before the second attempt
        self._opening = threading.RLock()
        self._is_closed = self._is_ready = False
        self._attempt_timeout: float | None = None  # seconds; None: that of the client
        self._failure = ""  # why the first contact failed
        self._failed_until = 0.0  # monotonic; until then no other contact is tried
        self._pid = os.getpid()

    def close(self) -> None:
        """Close the connection. Later requests raise StoreClosed."""
        self._is_closed = True
        if self._es is not None:
            self._es.close()

    def _connect(self) -> Elasticsearch:
        with self._opening:
            if self._es is None:
                if time.monotonic() < self._failed_until:  # threads that waited for the lock
                    raise StoreUnavailable(self._failure)
                self._es = self._make()
                try:
                    self.prepare()
                except BaseException as error:
                    self._es = None
                    if isinstance(error, StoreUnavailable):
                        self._failure = str(error)
                        self._failed_until = time.monotonic() + min(self._timeout, 2.0)
                    raise
                self._is_ready = True
            return self._es

    def attempts(self, longest: float = 2.0) -> Iterator[None]:
        """Yield once for each attempt until the timeout. Pauses grow to about `longest` seconds."""
        deadline, pause = time.monotonic() + self._timeout, self._pause
        while True:
            yield
            left = deadline - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(pause * random.uniform(0.5, 1.5), left))
            pause = min(2 * pause, longest)

    def within(self, seconds: float, hosts: int = 1) -> Client:
        """Return a copy that gives up after `seconds`; each of `hosts` gets an equal share."""
        if self._es is None:
            self._connect()
        limited = copy(self)
        limited._timeout = min(seconds, self._timeout)
        limited._attempt_timeout = limited._timeout / hosts
        return limited

    def about_server(self) -> Mapping[str, Any]:
        """Return what the server says of itself, such as its version. Raises StoreUnavailable.

        The request runs in a thread, because a DNS look-up has no timeout of its own.
        """
        limited = self.within(CONTACT_SECONDS, 1 + self.location.count(", "))
        answer: Future[Any] = Future()

        def ask() -> None:
            try:
                refused = (400, 403, 404, 405, 410)  # a server or user may lack the right to it
                answer.set_result(limited._retry(self._es, lambda es: es.info(), refused).body)
            except BaseException as error:
                answer.set_exception(error)

        threading.Thread(target=ask, daemon=True).start()
        try:
            found = answer.result(limited._timeout + 0.2)
        except TimeoutError:
            raise self._out_of_reach("it does not answer") from None
        return found if isinstance(found, Mapping) else {}

    def ask(self, request: Callable[[Any], Any], ignore: Sequence[int] = ()) -> Any:
        """Return the answer of `request(es)`. Raises StoreError for a status not in `ignore`."""
        if self._is_closed or self._pid != os.getpid():
            why = "is closed" if self._is_closed else "was opened before a fork; open it again here"
            raise StoreClosed(f"the store at {self.location} {why}")
        return self._retry(self._es if self._is_ready else self._connect(), request, ignore)

    def _retry(self, es: Any, request: Callable[[Any], Any], ignore: Sequence[int]) -> Any:
        from elasticsearch import ApiError, TransportError, UnsupportedProductError

        if self._attempt_timeout is not None:
            es = es.options(request_timeout=self._attempt_timeout)
        failed: StoreError | None = None
        for _ in self.attempts():
            try:
                return request(es)
            except UnsupportedProductError as error:
                raise StoreUnavailable(
                    f"what answers at {self.location} is not Elasticsearch: correct "
                    "vector_store.<name>.params.hosts"
                ) from error
            except ApiError as error:
                status, cause = error.meta.status, cause_of(error.body)
                if status in ignore:
                    return error
                if not may_retry(status, cause):
                    raise self.refusal(status, cause) from error
                failed = self.refusal(status, cause)
            except TransportError as error:
                failed = self._out_of_reach(" ".join(str(error.message).split()))
        raise failed or StoreUnavailable(f"Elasticsearch at {self.location}: no time was left")

    def _out_of_reach(self, why: str) -> StoreUnavailable:
        return StoreUnavailable(
            f"Elasticsearch at {self.location} cannot be reached: {why}. Start it, or correct "
            "vector_store.<name>.params.hosts"
        )

    def refusal(self, status: int, cause: Mapping[str, Any]) -> StoreError:
        """The exception for an error answer. Its message says what to do about it."""
        message = f"Elasticsearch at {self.location} answered {status}: {reason_of(cause)}"
        if is_block(cause):
            return StoreUnavailable(f"{message}. It takes no writes: free disk space on its nodes")
        if status in (401, 403):
            return StoreUnavailable(f"{message}. Correct vector_store.<name>.params.basic_auth")
        if status == 413:
            return StoreError(f"{message}. The call is larger than its http.max_content_length")
        return StoreUnavailable(message) if status in _BUSY else StoreError(message)

    # ------------------------------------------------------------ documents

    def mget(
        self, ids: Sequence[tuple[str, str]], fields: Any = True, optional: str = ""
    ) -> list[Doc | None]:
        """Read documents by index and id, in the order of `ids`; None for a missing one.

        They are read in real time. `fields`: which fields of the source; True: all. `optional`: an
        index that may be missing.
        """
        docs = [{"_index": index, "_id": each, "_source": fields} for index, each in ids]
        found: list[dict[str, Any]] = []

        def send(some: Sequence[Any]) -> list[dict[str, Any]]:
            answers = self.ask(lambda es: es.mget(docs=some))["docs"]
            return [
                {} if optional and a.get("_index") == optional and "error" in a else a
                for a in answers
            ]

        for start in range(0, len(docs), PAGE):
            found += self._answers(docs[start : start + PAGE], send)
        return [_doc_of(each) if each.get("found") else None for each in found]

    def bulk(self, writes: Sequence[Write]) -> list[Revision | None]:
        """Write documents. Returns new revisions; None where the condition did not hold (409)."""
        written: list[Revision | None] = []
        for lines in _chunks([each.lines() for each in writes]):
            for each in self._answers(lines, self._send):
                conflicts = each["status"] == 409
                written.append(None if conflicts else (each["_seq_no"], each["_primary_term"]))
        return written

    def _send(self, lines: Sequence[bytes]) -> list[dict[str, Any]]:
        """Send a bulk request; one that is too large is sent in halves."""
        answer = self.ask(
            lambda es: es.bulk(operations=lines, filter_path=_BULK_ANSWER, require_alias=True),
            ignore=(413,) if len(lines) > 1 else (),
        )
        if answer.meta.status == 413:
            half = len(lines) // 2
            return [*self._send(lines[:half]), *self._send(lines[half:])]
        return [body for item in answer["items"] for body in item.values()]

    def _answers(
        self, items: Sequence[Any], send: Callable[[Sequence[Any]], list[dict[str, Any]]]
    ) -> list[dict[str, Any]]:
        """The answer to each item, in order. Items whose error may pass are sent again."""
        answers: dict[int, dict[str, Any]] = {}
        pending = list(range(len(items)))
        for _ in self.attempts():
            answers |= zip(pending, send([items[at] for at in pending]), strict=True)
            pending = [
                at
                for at in pending
                if "error" in answers[at]
                and may_retry(answers[at].get("status", 0), cause_of(answers[at]))
            ]
            if not pending:
                break
        for each in answers.values():
            if "error" in each and each.get("status") != 409:
                cause = cause_of(each)
                gone = 404 if cause.get("type") == "index_not_found_exception" else 503
                raise self.refusal(each.get("status", gone), cause)
        return [answers[at] for at in range(len(items))]

    # ------------------------------------------------------------ searches

    def refresh(self, index: str) -> None:
        """Make every acknowledged write visible to searches."""
        self.ask(lambda es: es.indices.refresh(index=index))

    def search(self, **body: Any) -> Any:
        """Search. Raises StoreError, instead of a partial answer, if a shard is missing."""
        return self.ask(lambda es: es.search(allow_partial_search_results=False, **body))

    def values(self, index: str, field: str, filters: Sequence[Any]) -> list[str]:
        """The distinct values of a field, sorted."""
        self.refresh(index)
        aggs = {"values": {"terms": {"field": field, "size": MAX_VALUES}}}
        answer = self.search(index=index, size=0, aggs=aggs, **_query(filters, False))
        return sorted(each["key"] for each in answer["aggregations"]["values"]["buckets"])

    def scan(
        self,
        index: str,
        filters: Sequence[Any],
        fields: Any,
        order: Sequence[Any] = (),
        limit: int = sys.maxsize,
    ) -> Iterator[Doc]:
        """The first `limit` documents that pass the filters, in this order, from one snapshot."""
        self.refresh(index)
        body = {"size": min(PAGE, limit), **_query(filters, fields)}
        hits = self.search(index=index, sort=order, **body)["hits"]["hits"]
        if len(hits) < PAGE or limit == PAGE:
            yield from map(_doc_of, hits)
            return
        pit = self.ask(lambda es: es.open_point_in_time(index=index, keep_alive=KEEP_ALIVE))["id"]
        body |= {"pit": {"id": pit, "keep_alive": KEEP_ALIVE}, "sort": order or ["_shard_doc"]}
        try:
            while hits and limit:
                hits = self.search(**body)["hits"]["hits"][:limit]
                yield from map(_doc_of, hits)
                limit -= len(hits)
                body["search_after"] = hits[-1]["sort"] if hits else None
        finally:
            self.ask(lambda es: es.close_point_in_time(id=pit), ignore=(404,))


def _query(filters: Sequence[Any], fields: Any) -> dict[str, Any]:
    """Return search parameters for documents that pass the filters, with their revisions."""
    shown = {"source": fields, "seq_no_primary_term": True, "version": True}
    return {"query": {"bool": {"filter": filters}}, **shown}


def _doc_of(each: Mapping[str, Any]) -> Doc:
    revision = (each["_seq_no"], each["_primary_term"])
    return Doc(each["_id"], each.get("_source", {}), revision, each["_version"])


def _chunks(lines: Sequence[bytes]) -> Iterator[list[bytes]]:
    chunk: list[bytes] = []
    size = 0
    for each in lines:
        if chunk and (len(chunk) == PAGE or size + len(each) > BULK_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(each)
        size += len(each)
    if chunk:
        yield chunk


def cause_of(body: Any) -> Mapping[str, Any]:
    """The error in an answer, or in one item of a bulk answer."""
    cause = body.get("error") if isinstance(body, Mapping) else None
    if cause is None and isinstance(body, Mapping):  # a refresh answers with errors of shards
        cause = (body.get("_shards", {}).get("failures") or [{}])[0].get("reason")
    return cause if isinstance(cause, Mapping) else {"type": "", "reason": str(cause or body)[:300]}


def reason_of(cause: Mapping[str, Any]) -> str:
    """Describe an error of the server in one line of at most 500 characters."""
    inner = cause.get("caused_by")
    because = f" ({inner.get('reason')})" if isinstance(inner, Mapping) else ""
    return f"{cause.get('type')}: {cause.get('reason')}{because}"[:500]


def is_block(cause: Mapping[str, Any]) -> bool:
    """Whether an error says that the index takes no writes until an administrator acts."""
    return "cluster_block" in str(cause.get("type")) and "read-only" in str(cause.get("reason"))


def may_retry(status: int, cause: Mapping[str, Any]) -> bool:
    """Whether to send a request with this error again. `status`: 0 if the error has none."""
    if status in _BUSY:
        return not is_block(cause)
    text = f"{cause.get('type')} {cause.get('reason')}"
    return status in (0, 500) and _MOVING.search(text) is not None
