"""What went wrong on the way to the server, in words that say what to do about it. Never a password or a key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolmem.errors import StoreError, StoreUnavailable

if TYPE_CHECKING:
    from elasticsearch import TransportError

RETRYABLE = frozenset((429, 502, 503, 504))
# How a node answers that has lost touch with the others, or is about to go.
_MOVING = frozenset(
    (
        *("node_disconnected_exception", "node_not_connected_exception", "node_closed_exception"),
        *("index_shard_closed_exception", "shard_not_in_primary_mode_exception", "no_longer_primary_shard_exception"),
        *("receive_timeout_transport_exception", "send_request_transport_exception", "already_closed_exception"),
    )
)
# What a multi-get says of a document whose shard does not answer now; it gives no status.
_PASSING = _MOVING | {
    *("no_shard_available_action_exception", "unavailable_shards_exception", "illegal_index_shard_state_exception"),
    *("shard_not_found_exception", "es_rejected_execution_exception", "circuit_breaking_exception"),
}
# How aiohttp tells of a host that cannot be reached: what stands in brackets is its reason, or the addresses it tried.
_NOISE = re.compile(r"\s+ssl:\S+(?:\s+\[(?P<reason>.*)\])?\s*$", re.DOTALL)
_ADDRESSES_TRIED = "Connect call failed"


@dataclass(frozen=True, slots=True)
class Location:
    """Where a server is, without credentials, and by what a user says so."""

    hosts: str
    params: str = "vector_store.<name>.params"  # the section that holds its settings
    given_by: str = ""  # what gave the hosts, e.g. `--to`; "": `hosts` in `params`

    def __str__(self) -> str:
        return self.hosts

    @property
    def hosts_setting(self) -> str:
        return self.given_by or f"{self.params}.hosts"


def error_cause(body: Any) -> Mapping[str, Any]:
    """The error object of an answer or of a bulk item."""
    cause = body.get("error") if isinstance(body, Mapping) else None
    if cause is None and isinstance(body, Mapping):  # of an operation on all shards, e.g. a refresh
        shards = body.get("_shards", {}).get("failures") or [{}]
        cause = shards[0].get("reason")
    return cause if isinstance(cause, Mapping) else {"type": "unknown", "reason": str(cause or body)[:300]}


def is_block(cause: Mapping[str, Any]) -> bool:
    """An index that takes no writes stays so until somebody acts: trying again is no use."""
    return "cluster_block_exception" in str(cause.get("type")) and "read-only" in str(cause.get("reason"))


def may_retry(status: int, cause: Mapping[str, Any]) -> bool:
    """Whether it may go better in a moment: the server is busy, or a node that left has not been replaced yet."""
    if status in RETRYABLE:
        return not is_block(cause)
    return status == 500 and (str(cause.get("type")) in _MOVING or "primary term" in str(cause.get("reason")))


def may_retry_item(answer: Mapping[str, Any]) -> bool:
    """Of an item of a bulk."""
    return "error" in answer and may_retry(answer["status"], answer["error"])


def is_passing(answer: Mapping[str, Any]) -> bool:
    """Of a document in a multi-get: whether it may be had in a moment."""
    return "error" in answer and str(answer["error"].get("type")) in _PASSING


def status_of(answer: Mapping[str, Any]) -> int:
    """Of an item with an error; a multi-get tells no status."""
    kind = str(answer["error"].get("type"))
    return int(answer.get("status") or (404 if "index_not_found" in kind else 403 if "security" in kind else 503))


def reason(cause: Mapping[str, Any]) -> str:
    """One line of an item's error, with what caused it."""
    inner = cause.get("caused_by")
    because = f" ({inner.get('reason')})" if isinstance(inner, Mapping) else ""
    return f"{cause.get('type')}: {cause.get('reason')}{because}"[:500]


def refusal(status: int, cause: Mapping[str, Any], location: Location) -> StoreError:
    told = reason(cause)
    if is_block(cause):
        return StoreUnavailable(
            f"Elasticsearch at {location} takes no writes: {told}. Free disk space on its nodes (the block goes by "
            "itself below the flood-stage watermark), or remove the index setting index.blocks.read_only_allow_delete"
        )
    if status in (401, 403):
        return StoreUnavailable(
            f"Elasticsearch at {location} refused the credentials ({status}): set {location.params}.api_key or "
            f".basic_auth of a user who may read, write, refresh and create the indices of the prefix. It said: {told}"
        )
    if status in (400, 406) and "media_type" in told:
        return too_old("?", location)
    if status == 404 and "index_not_found" in told:
        return StoreUnavailable(f"Elasticsearch at {location}: {told}; it was deleted: open the store again to make it")
    if status == 413:
        return StoreError(f"Elasticsearch at {location}: the request is larger than its http.max_content_length")
    if status in RETRYABLE:
        return StoreUnavailable(
            f"Elasticsearch at {location} could not serve within the timeout ({status}): {told}. Look at its health "
            f"(GET _cluster/health), lower the load, or raise {location.params}.timeout"
        )
    return StoreError(f"Elasticsearch at {location} answered {status}: {told}")


def unreachable(error: TransportError, location: Location, seconds: float) -> StoreUnavailable:
    """No usable answer came."""
    from elastic_transport import ConnectionTimeout, TlsError

    if isinstance(error, TlsError):
        return StoreUnavailable(
            f"no secure connection to Elasticsearch at {location}: {error.message}. Set {location.params}.ca_certs to "
            "the file of the certificate authority, or use http:// where the server has no TLS"
        )
    what = "did not answer in time" if isinstance(error, ConnectionTimeout) else "cannot be reached"
    return StoreUnavailable(
        f"Elasticsearch at {location} {what} (tried for {seconds:.1f} s): {_told(error)}. Start the server, or "
        f"correct {location.hosts_setting}"
    )


def _told(error: TransportError) -> str:
    """The library's message without what only its makers can read."""
    message = str(error.message)
    found = _NOISE.search(message)
    if found is None:
        return message
    inner = found["reason"] or ""
    return message[: found.start()] + (f" ({inner})" if inner and _ADDRESSES_TRIED not in inner else "")


def not_elasticsearch(location: Location) -> StoreUnavailable:
    return StoreUnavailable(
        f"what answers at {location} is not Elasticsearch (a proxy, OpenSearch, or another service): correct "
        + location.hosts_setting
    )


def too_old(version: str, location: Location) -> StoreUnavailable:
    return StoreUnavailable(
        f"the server at {location} is Elasticsearch {version}; toolmem needs 8.13 or newer (8.x or 9.x): upgrade it, "
        f"or use {location.params.removesuffix('.params')}.backend=sqlite"
    )
