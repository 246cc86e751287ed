"""Indices, mappings and ids of documents.

`PREFIX-tools`: one document for each tool, its last commit. `PREFIX-calls`: one for each call.
`PREFIX-records`: keyed records and the guidance of tools, both searchable. `PREFIX-rule-copies`: a
copy of each rule in `PREFIX-records`, under the same id, so that rules survive the loss of that
index. What users store is text in fields without an index, so that no value becomes a field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

from toolmem.errors import RequestError, StoreUnavailable, StoreVersionError
from toolmem.store.elasticsearch.client import Client, reason_of

SCHEMA = 1
OLDEST = (8, 15)  # supported version of the server
SYSTEM = ".store"  # the workspace and the namespace of the store's own records

_NAME = {"type": "keyword"}
_BODY = {"type": "keyword", "index": False, "doc_values": False}
_FLAG = {"type": "boolean"}
_MAPPINGS: dict[str, dict[str, Any]] = {
    "tools": {"workspace": _NAME, "name": _NAME, "live": _FLAG, "state": _BODY, "outbox": _BODY},
    "calls": {
        "stem": {"type": "keyword", "doc_values": False},
        "seq": {"type": "long", "doc_values": False},
        "position": {"type": "long"},
        "conversation": {"type": "keyword", "doc_values": False},
        "body": _BODY,
    },
    "records": {
        **dict.fromkeys(("workspace", "namespace", "key"), _NAME),
        "live": _FLAG,
        **dict.fromkeys(("version", "created", "modified", "recent", "body", "text"), _BODY),
        "words": {"type": "text", "analyzer": "whitespace"},
        "embedder": _NAME,  # the one that made the document's vector
    },
}
_MAPPINGS["rule-copies"] = _MAPPINGS["records"]


def digest(*parts: str) -> str:
    """Hash these texts in this order into 30 hex digits."""
    state = blake2b(digest_size=15)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        state.update(len(data).to_bytes(4, "big") + data)
    return state.hexdigest()


def terms(**wanted: Any) -> list[dict[str, Any]]:
    """Filters that a document passes if its fields have these values."""
    return [{"term": {field: value}} for field, value in wanted.items()]


class Layout:
    """The indices whose names begin with one prefix. `prepare` creates missing ones."""

    def __init__(self, client: Client, prefix: str) -> None:
        self._client = client
        self.prefix = prefix
        self._dimensions: set[int] = set()  # for which a vector field is mapped
        self._mappings = {f"{prefix}-{kind}": mapping for kind, mapping in _MAPPINGS.items()}
        self.tools, self.calls, self.records, self.copies = self._mappings

    def prepare(self) -> None:
        """Create the missing indices; another process may do the same. Raises StoreError."""
        self._require_version(self._client.about_server())
        names = {f"{alias}-{SCHEMA}": alias for alias in self._mappings}
        found = self._client.ask(
            lambda es: es.indices.get_mapping(
                index=",".join(names), ignore_unavailable=True, allow_no_indices=True
            ),
            ignore=(404,),
        ).body
        for name, index in found.items():
            version = index.get("mappings", {}).get("_meta", {}).get("toolmem", 0)
            if version != SCHEMA:
                raise StoreVersionError(
                    f"the index {name} was made by another version of toolmem or by another "
                    f"program (schema {version}, this one reads {SCHEMA}); choose another "
                    "index_prefix"
                )
        for name, alias in names.items():
            if name not in found:
                self.create(alias)

    def _require_version(self, server: Mapping[str, Any]) -> None:
        """Raises StoreUnavailable for a server that is too old."""
        version = {"number": "", "build_flavor": "", **server.get("version", {})}
        found = re.match(r"(\d{1,4})\.(\d{1,4})", str(version["number"]))
        if not found or version["build_flavor"] == "serverless":  # it always says 8.11
            return
        if (int(found[1]), int(found[2])) < OLDEST:
            raise StoreUnavailable(
                f"Elasticsearch at {self._client.location} is {version['number']}; toolmem needs "
                "8.15 or newer (8.11 lacks the vector type `flat`): upgrade it"
            )

    def create(self, alias: str) -> None:
        """Create an index and its alias. Writes fail without the alias: they create no index."""
        mappings = {
            "dynamic": "strict",
            "_meta": {"toolmem": SCHEMA},
            "properties": self._mappings[alias],
        }
        settings = {"number_of_shards": 1, "auto_expand_replicas": "0-1", "refresh_interval": "-1"}

        def send(es: Any) -> Any:
            name = f"{alias}-{SCHEMA}"
            return es.indices.create(
                index=name, mappings=mappings, settings=settings, aliases={alias: {}}
            )

        try:
            self._ask(send)
        except RequestError as error:
            if "serverless" not in str(error):
                raise
            for name in re.findall(r"index\.(\w+)", str(error)):  # settings that it refuses
                settings.pop(name, None)
            self._ask(send)

    def vector_field(self, dimension: int) -> str:
        """Return the field for vectors of this length. The first use adds it to the index."""
        field = f"vector_{dimension}"
        if dimension not in self._dimensions:
            vector = {
                "type": "dense_vector",
                "dims": dimension,
                "index": True,
                "similarity": "cosine",
                "index_options": {"type": "flat"},  # exact
            }
            self._ask(
                lambda es: es.indices.put_mapping(index=self.records, properties={field: vector})
            )
            self._dimensions.add(dimension)
        return field

    def _ask(self, request: Callable[[Any], Any]) -> None:
        """Send a request that another process may have sent already. Raises RequestError."""
        cause = self._client.ask(request, ignore=(400,)).body.get("error")
        if cause and cause.get("type") != "resource_already_exists_exception":
            raise RequestError(f"Elasticsearch at {self._client.location}: {reason_of(cause)}")
