"""Search, as far as every backend does the same: what is asked, which records pass, how legs become one list."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from toolmem.errors import EmbedderMismatch, RequestError
from toolmem.late_dataclasses import dataclass
from toolmem.store.codec import micros, require_storable
from toolmem.store.words import index_words, query_words
from toolmem.stored import Document, Hit, RawRecord, Where

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from toolmem.protocols import EmbedderIdentity

RANK_CONSTANT = 60  # k in Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion ...", SIGIR 2009


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search as the legs are asked."""

    words: Sequence[str]  # none: no text leg
    vector: NDArray[np.float32] | None  # unit length; None: no vector leg
    depth: int  # how many of the best each leg hands over
    where: Where
    since: int | None  # `where.modified_since` in microseconds since 1970

    def passes(self, record: RawRecord | str, modified: int) -> bool:
        """`record`: or the name of the tool whose guidance it is."""
        key, value = (record, "") if isinstance(record, str) else (record.key, record.text)
        return (
            (self.where.keys is None or key in self.where.keys)
            and (self.since is None or modified >= self.since)
            and (not self.where.equals or holds(value, self.where.equals))
        )


class Legs(NamedTuple):
    """Keys, best first, and the cosines that are known."""

    text: Sequence[str]
    vector: Sequence[str] = ()
    similarity: Mapping[str, float | None] = {}


def search_request(
    text: str, vector: NDArray[np.float32] | None, top_k: int, where: Where, embedder: EmbedderIdentity | None
) -> SearchRequest:
    """Raises RequestError (a bad vector or filter)."""
    unit = None if vector is None else unit_vector(vector, embedder, "vector")
    if where.namespace is None and where.equals:
        raise RequestError(
            "where.equals: filters the fields of keyed records; the guidance of tools has none", field="where.equals"
        )
    try:
        since = None if where.modified_since is None else micros(where.modified_since)
    except ValueError as error:
        raise RequestError(f"where.modified_since: {error}", field="where.modified_since") from error
    return SearchRequest(query_words(text), unit, leg_depth(top_k), where, since)


def leg_depth(top_k: int) -> int:
    """How many of the best each leg hands over: more than asked, so that a document that is fair in both legs can
    beat one that is good in one.
    """
    return max(100, 10 * top_k)


def fuse(text: Sequence[str], vector: Sequence[str], similarity: Mapping[str, float | None], top_k: int) -> list[Hit]:
    """`text` and `vector`: keys, best first. A document scores the sum of 1 / (k + rank) over the legs that found it;
    equal scores are ordered by key.
    """
    text_rank = {key: rank for rank, key in enumerate(text, 1)}
    vector_rank = {key: rank for rank, key in enumerate(vector, 1)}
    score: dict[str, float] = {}
    for ranks in (text_rank, vector_rank):
        for key, rank in ranks.items():
            score[key] = score.get(key, 0.0) + 1 / (RANK_CONSTANT + rank)
    best = sorted(score, key=lambda key: (-score[key], key))[: max(top_k, 0)]
    return [Hit(key, score[key], similarity.get(key), text_rank.get(key), vector_rank.get(key)) for key in best]


def best_first(scores: Mapping[str, float], depth: int) -> list[str]:
    """By score to nine decimals, then by key: every backend ranks alike."""
    return sorted(scores, key=lambda key: (-round(scores[key], 9), key))[:depth]


def scan(asked: SearchRequest, documents: Iterable[tuple[RawRecord | str, Document, int]]) -> Legs:
    """The legs of a store without an index, which looks at each document of a namespace: its record (or the name of its
    tool), itself, when it was written in microseconds since 1970.
    """
    found: dict[str, float] = {}
    similarity: dict[str, float] = {}
    without_direction: set[str] = set()
    for record, document, modified in documents:
        key = record if isinstance(record, str) else record.key
        if not asked.passes(record, modified):
            continue
        words = Counter(index_words(document.text))
        if score := sum(words[word] / (words[word] + words.total()) for word in asked.words if words[word]):
            found[key] = score
        if asked.vector is not None and document.vector is not None:
            similarity[key] = float(document.vector @ asked.vector)
            if not (asked.vector.any() and document.vector.any()):
                without_direction.add(key)
    ranked = {key: cosine for key, cosine in similarity.items() if key not in without_direction}
    return Legs(best_first(found, asked.depth), best_first(ranked, asked.depth), similarity)


# -- filters


def holds(value: str, equals: Mapping[str, Any]) -> bool:
    """Whether the record's fields equal, or, for a list, contain what is asked for. A damaged record does not."""
    try:
        fields = json.loads(value)
    except (ValueError, TypeError, RecursionError):
        return False
    return isinstance(fields, dict) and all(
        name in fields and _equal_or_contains(fields[name], expected) for name, expected in equals.items()
    )


def _equal_or_contains(actual: Any, expected: Any) -> bool:
    if isinstance(actual, list) and not isinstance(expected, list):
        return any(_equal(item, expected) for item in actual)
    return _equal(actual, expected)


def _equal(actual: Any, expected: Any) -> bool:
    """As in JSON: true is not 1."""
    return isinstance(actual, bool) == isinstance(expected, bool) and bool(actual == expected)


# -- vectors and their embedder


def stored_document(document: Document, embedder: EmbedderIdentity | None, stored: EmbedderIdentity | None) -> Document:
    """As it is kept: its vector of unit length. `stored`: whose vectors the store holds, None where it holds none.

    Raises RequestError (a text or vector that cannot be kept) or EmbedderMismatch.
    """
    require_storable(document.text, "document.text")
    if document.vector is None:
        return document
    vector = unit_vector(document.vector, embedder, "document.vector")
    require_embedder(stored, embedder)
    return Document(document.text, vector)


def unit_vector(vector: NDArray[np.float32], embedder: EmbedderIdentity | None, field: str) -> NDArray[np.float32]:
    """Of unit length; a zero vector stays zero. Raises RequestError for a wrong shape, NaN or infinity."""
    import numpy as np

    array = np.asarray(vector, dtype=np.float64)
    if embedder is None:
        raise RequestError(f"{field}: this store was opened without an embedder; it takes no vectors", field=field)
    if array.shape != (embedder.dimension,):
        raise RequestError(
            f"{field}: expected {embedder.dimension} numbers ({embedder.name}/{embedder.model}), "
            f"got shape {tuple(array.shape)}",
            field=field,
        )
    if not np.isfinite(array).all():
        raise RequestError(f"{field}: holds NaN or infinity", field=field)
    length = float(np.linalg.norm(array))
    return (array / length if length else array).astype(np.float32)


def pack(vector: NDArray[np.float32]) -> bytes:
    """Its numbers as they are kept: float32, little endian."""
    return vector.astype("<f4").tobytes()


def unpack(packed: bytes) -> NDArray[np.float32]:
    """The numbers of one vector, or of several one after the other."""
    import numpy as np

    return np.frombuffer(packed, dtype="<f4").astype(np.float32, copy=False)


def cosines(rows: NDArray[np.float32], query: NDArray[np.float32]) -> list[float]:
    """Products in float64, row by row: equal vectors get equal figures, on every backend."""
    import numpy as np

    products: list[float] = np.clip((rows.astype(np.float64) * query).sum(axis=1), -1.0, 1.0).tolist()
    return products


def require_embedder(stored: EmbedderIdentity | None, embedder: EmbedderIdentity | None) -> None:
    """Raises EmbedderMismatch where `stored` vectors are not those of this embedder."""
    if stored is not None and embedder is not None and stored != embedder:
        raise EmbedderMismatch(
            f"the vectors in the store come from the embedder {_named(stored)}, the one configured is "
            f"{_named(embedder)}; run `toolmem store reembed` once, or configure the former"
        )


def _named(embedder: EmbedderIdentity) -> str:
    return f"{embedder.name}/{embedder.model} ({embedder.dimension} dimensions)"
