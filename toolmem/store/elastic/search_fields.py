"""The searchable side of guidance and keyed records, as fields of the document that it belongs to."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolmem.store.elastic.document_ids import digest
from toolmem.store.elastic.indices import packed_field, vector_field
from toolmem.store.searching import pack, unpack
from toolmem.store.words import index_words


@dataclass(frozen=True, slots=True)
class Searchable:
    """A text and its vectors, unit length or zero, by generation."""

    text: str
    vectors: Mapping[int, NDArray[np.float32]] = field(default_factory=dict)


def fields(document: Searchable | None, modified: int) -> dict[str, Any]:
    """Of the source to write. A zero vector has no direction: it is kept, and no vector search ever finds it."""
    if document is None:
        return {"searchable": False, "time_modified": modified}
    written: dict[str, Any] = {
        "searchable": True,
        "time_modified": modified,
        "words": " ".join(index_words(document.text)),
        "embedded": [str(generation) for generation in document.vectors],
    }
    for generation, vector in document.vectors.items():
        written[packed_field(generation)] = b64encode(pack(vector)).decode("ascii")
        if vector.any():
            # To nine decimals: half the JSON. Candidates are found by it; cosines are computed from the packed numbers.
            written[vector_field(generation)] = np.round(vector.astype(np.float64), 9).tolist()
    return written


def read(source: Mapping[str, Any], text: str | None) -> Searchable | None:
    """From a source; `text` stands in its body."""
    if text is None:
        return None
    vectors = {int(name): unpack(b64decode(source[packed_field(int(name))])) for name in source.get("embedded") or ()}
    return Searchable(text, vectors)


# -- the fields of a record's value, as filters ask for them


def facts(value: Mapping[str, Any]) -> list[str]:
    """What `Where.equals` may ask of this value, each as a digest: a field's value, and each item of a list."""
    found: dict[str, None] = {}
    for name, held in value.items():
        found[fact(name, held)] = None
        if isinstance(held, list):
            found.update((fact(name, item), None) for item in held if not isinstance(item, list))
    return list(found)


def fact(name: str, value: Any) -> str:
    return digest(name, json.dumps(_canonical(value), sort_keys=True, ensure_ascii=False))


def _canonical(value: Any) -> Any:
    """1.0 and 1 are one number in JSON; true is another value than 1."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): _canonical(item) for name, item in value.items()}
    return value
