"""Sets of indices for tests. Making one takes longer than most tests do: it is emptied and lent to the next one."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
import uuid
from collections import defaultdict
from typing import Any, Self

KINDS = ("tools", "calls", "ids", "records", "verdicts", "decisions", "meta")
_HIGHEST = ("calls-", "decisions-")  # positions given in a workspace: they grow over its end, and no store deletes them
MANY = 2000  # documents: beyond, the indices go as a whole


class IndexSets:
    """The sets that were made on a server in this process; all of them go at the end.

    Vectors of one dimension are mapped for good, so that a set is lent for that dimension again. It is not lent again
    where a test has changed more than its documents, nor where a writer was killed: a request of it may still arrive.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._free: dict[int, list[str]] = defaultdict(list)  # by dimension; 0 where no vector was written

    @staticmethod
    def new_prefix() -> str:
        return f"toolmem-test-{uuid.uuid4().hex[:12]}"

    def lend(self, dimension: int) -> str:
        """The prefix of an empty set, or of none yet."""
        for free in (self._free[dimension], self._free[0]):
            if free:
                return free.pop()
        return self.new_prefix()

    def give_back(self, prefix: str) -> None:
        dimension = self._empty(prefix)
        if dimension is None:
            self.drop(prefix)
        else:
            self._free[dimension].append(prefix)

    def drop(self, prefix: str) -> None:
        self._ask("DELETE", f"{_names(prefix)}?ignore_unavailable=true")

    def _empty(self, prefix: str) -> int | None:
        """Delete what a store deletes. The dimension of the vectors, None where the set cannot be used again."""
        dimension = self._dimension(prefix)
        if dimension is None:
            return None
        self._ask("POST", f"{_names(prefix)}/_refresh")
        found = self._ask("POST", f"{_names(prefix)}/_search", {"size": MANY, "_source": False})["hits"]
        if found["total"]["value"] > MANY or any(hit["_id"].startswith("writer-") for hit in found["hits"]):
            return None
        gone = [hit for hit in found["hits"] if not hit["_id"].startswith(_HIGHEST)]
        deletions = [{"delete": {"_index": hit["_index"], "_id": hit["_id"]} | _routing(hit)} for hit in gone]
        if deletions:
            answer = self._ask("POST", "_bulk?refresh=true", *deletions)
            assert not answer["errors"], answer
        return dimension

    def _dimension(self, prefix: str) -> int | None:
        try:
            found = self._ask("GET", _names(prefix))
        except urllib.error.HTTPError:
            return None  # an index is missing
        vectors = {
            (name, field["dims"], field["index_options"]["type"])
            for index in found.values()
            for name, field in index["mappings"]["properties"].items()
            if field["type"] == "dense_vector"
        }
        if not vectors:
            return 0
        (name, dimension, kind), *others = vectors
        return dimension if not others and name == "vector_1" and kind == "flat" else None

    def _ask(self, method: str, path: str, *lines: Any) -> Any:
        """`lines`: nothing, a body, or the lines of a bulk request."""
        body = "".join(json.dumps(line) + "\n" for line in lines).encode() if lines else None
        kind = "application/x-ndjson" if path.startswith("_bulk") else "application/json"
        request = urllib.request.Request(f"{self._url}/{path}", body, {"Content-Type": kind}, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for prefix in (prefix for free in self._free.values() for prefix in free):
            self.drop(prefix)


def _names(prefix: str) -> str:
    return ",".join(f"{prefix}-{kind}-v1" for kind in KINDS)


def _routing(hit: dict[str, Any]) -> dict[str, str]:
    return {"routing": hit["_routing"]} if "_routing" in hit else {}
