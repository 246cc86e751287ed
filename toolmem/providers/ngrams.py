"""The arithmetic of hashed character n-grams: from normalized texts to unit vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

NGRAM_LENGTHS = (2, 3, 4)

_SPACE = np.uint32(32)
_PRIME = np.uint64(0x100000001B3)


def unit_rows(texts: Sequence[str], dimension: int) -> NDArray[np.float32]:
    """Of texts that are `normalized`: float32, shape (len(texts), dimension), rows of unit length or zero."""
    text_of, ngram = _ngrams(texts)
    # Distinct n-grams of each text and how often it holds them: sort by (text, n-gram), cut at the changes.
    order = np.lexsort((ngram, text_of))
    text_of, ngram = text_of[order], ngram[order]
    first = np.ones(len(ngram), dtype=bool)
    first[1:] = (ngram[1:] != ngram[:-1]) | (text_of[1:] != text_of[:-1])
    starts = np.flatnonzero(first)
    times = np.diff(np.append(starts, len(ngram)))
    ngram, text_of = ngram[starts], text_of[starts]
    sign = np.where(ngram >> np.uint64(63), 1.0, -1.0)
    bucket = (ngram % np.uint64(dimension)).astype(np.int64)
    sums = np.bincount(
        text_of * dimension + bucket,
        weights=sign * (1.0 + np.log(times)),
        minlength=len(texts) * dimension,
    )
    # Without any n-gram, bincount forgets about the weights and counts in integers.
    rows = sums.astype(np.float64).reshape(len(texts), dimension)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    lengths[lengths == 0] = 1.0
    unit: NDArray[np.float32] = (rows / lengths).astype(np.float32)
    return unit


def _ngrams(texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """For each n-gram that lies within a word (its bounding spaces included): the text it is from, and its hash."""
    codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint32)
    text_of = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    space = codes == _SPACE
    found_texts, found_hashes = [], []
    for length in NGRAM_LENGTHS:
        count = max(len(codes) - length + 1, 0)
        hashes = np.full(count, length, dtype=np.uint64)
        within = np.ones(count, dtype=bool)
        empty = np.ones(count, dtype=bool)
        for offset in range(length):
            part = slice(offset, offset + count)
            hashes = (hashes ^ codes[part]) * _PRIME
            empty &= space[part]
            if 0 < offset < length - 1:
                within &= ~space[part]
        chosen = within & ~empty
        found_texts.append(text_of[:count][chosen])
        found_hashes.append(_mixed(hashes[chosen]))
    return np.concatenate(found_texts), np.concatenate(found_hashes)


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): every bit depends on every bit."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
